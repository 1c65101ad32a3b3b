#include "worker/train/checkpointing.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "worker/train/gather.h"

namespace lockstep {
namespace {

// One kind of values of this rank's shards.
struct ShardValues {
  std::string kind;
  // fp32, flat, of a segment's shard.
  std::function<Tensor(int segment)> of;
};

std::vector<ShardValues> AllValues(const TrainingState& state) {
  const ParameterStore& store = *state.store;
  std::vector<ShardValues> all = {
      {"parameter", [&store](int segment) { return store.master(segment); }}};
  if (state.optimizer == nullptr) return all;
  for (const OptimizerState& states : state.optimizer->states()) {
    all.push_back({states.kind, [&store, values = states.values](int segment) {
                     return values.Slice(
                         store.shard_begin(segment),
                         store.segments()[segment].shard_elements);
                   }});
  }
  return all;
}

// Where elements from `held` on of what a rank holds of `tensor` lie: in which
// of its columns, and from which of their elements on.
struct Place {
  ColumnRange columns;
  int64_t offset = 0;
};

Place PlaceOf(const LogicalTensor& tensor, int64_t held) {
  if (tensor.split_dim > 0 && tensor.held_shape != tensor.shape) {
    return {{tensor.split_begin, tensor.held_shape[tensor.split_dim]}, held};
  }
  const int64_t row = tensor.elements() / tensor.shape.front();
  return {{}, tensor.split_begin * row + held};
}

// What `part` of all of this rank's shards, one after another, holds of each
// logical tensor.
std::vector<TensorSlice> SlicesOf(const TrainingState& state, FlatRange part) {
  std::vector<TensorSlice> slices;
  const ParameterStore& store = *state.store;
  for (const ShardValues& values : AllValues(state)) {
    for (const ShardPiece& piece : store.pieces()) {
      const int64_t shard = store.shard_begin(piece.segment);
      const int64_t begin = std::max(part.begin - shard, piece.range.begin);
      const int64_t end = std::min(part.end - shard, piece.range.end);
      if (begin >= end) continue;
      const LogicalTensor& tensor = store.tensors()[piece.tensor];
      if (!tensor.counted) continue;
      const Place place =
          PlaceOf(tensor, piece.tensor_offset + begin - piece.range.begin);
      slices.push_back(
          {tensor.name, values.kind, tensor.shape, place.offset,
           absl::MakeConstSpan(values.of(piece.segment).data<float>() + begin,
                               end - begin),
           place.columns});
    }
  }
  return slices;
}

// Elements read at a time, 16 MiB: a second or less of a slow disk.
constexpr int64_t kReadElements = int64_t{4} << 20;

// Reads `values`, which begin at `place` of tensor `name`, block by block.
absl::Status ReadTensor(const CheckpointReader& reader, const std::string& name,
                        const std::string& kind, const Place& place,
                        absl::Span<float> values,
                        const std::function<void()>& alive) {
  const auto elements = static_cast<int64_t>(values.size());
  for (int64_t offset = 0; offset < elements; offset += kReadElements) {
    alive();
    RETURN_IF_ERROR(reader.Read(name, kind, place.columns,
                                place.offset + offset,
                                values.subspan(offset, kReadElements)));
  }
  return absl::OkStatus();
}

// Whether the checkpoint has all of the model's tensors, in their shapes.
absl::Status CheckTensors(const CheckpointReader& reader,
                          const std::vector<LogicalTensor>& tensors,
                          const std::string& kind) {
  for (const LogicalTensor& tensor : tensors) {
    if (!reader.Contains(tensor.name, kind)) {
      return absl::FailedPreconditionError(absl::StrCat(
          reader.directory(), " has no ", kind, " of ", tensor.name));
    }
    const std::vector<int64_t> stored = reader.Shape(tensor.name, kind);
    if (stored != tensor.shape) {
      return absl::FailedPreconditionError(absl::StrCat(
          reader.directory(), ": ", kind, " of ", tensor.name, " has shape (",
          absl::StrJoin(stored, ", "), "), the model's has (",
          absl::StrJoin(tensor.shape, ", "), ")"));
    }
  }
  return absl::OkStatus();
}

v1::CheckpointManifest ManifestOf(const TrainingState& state,
                                  const CheckpointFacts& facts) {
  v1::CheckpointManifest manifest;
  manifest.set_format_version(1);
  manifest.set_job(facts.job);
  manifest.set_generation(facts.generation);
  manifest.set_step(state.step);
  manifest.set_data_position(state.data_position);
  *manifest.mutable_spec() = facts.spec;
  manifest.mutable_spec()->mutable_model()->set_vocabulary(
      state.model_spec.vocabulary);
  manifest.set_data_digest(facts.data_digest);
  for (const std::string& label : facts.labels) manifest.add_labels(label);
  return manifest;
}

}  // namespace

absl::Status SaveCheckpoint(const RankContext& context,
                            const TrainingState& state,
                            const CheckpointFacts& facts) {
  const int64_t elements = state.store->shard_elements();
  // Replicas hold the same values: each writes an equal part of them.
  const int replica = context.replicas.rank(),
            replicas = context.replicas.size();
  const FlatRange part = {elements * replica / replicas,
                          elements * (replica + 1) / replicas};
  ASSIGN_OR_RETURN(const ShardDescription shard,
                   WriteShard(TemporaryCheckpointPath(facts.job_dir, state.step,
                                                      facts.generation),
                              context.world.rank(), SlicesOf(state, part), [&] {
                                context.reporter.SetPhase(state.step, "saving");
                              }));
  ASSIGN_OR_RETURN(const std::vector<std::string> gathered,
                   GatherBytes(context.world, SerializeShard(shard)));
  if (!context.speaks()) return absl::OkStatus();

  std::vector<ShardDescription> shards;
  for (const std::string& text : gathered) {
    ASSIGN_OR_RETURN(ShardDescription parsed, ParseShard(text));
    shards.push_back(std::move(parsed));
  }
  ASSIGN_OR_RETURN(const FinishedCheckpoint finished,
                   FinishCheckpoint(facts.job_dir, ManifestOf(state, facts),
                                    shards, facts.tokenizer_files));
  v1::RankReport report;
  v1::CheckpointPrepared& prepared = *report.mutable_checkpoint();
  prepared.set_step(state.step);
  prepared.set_path(finished.path);
  prepared.set_manifest_hash(finished.manifest_hash);
  prepared.set_bytes(finished.bytes);
  context.reporter.Report(std::move(report));
  return absl::OkStatus();
}

absl::Status LoadCheckpoint(const RankContext& context,
                            const CheckpointReader& reader,
                            TrainingState& state) {
  const auto alive = [&] { context.reporter.SetPhase(0, "loading"); };
  const ParameterStore& store = *state.store;
  for (const ShardValues& values : AllValues(state)) {
    RETURN_IF_ERROR(CheckTensors(reader, store.tensors(), values.kind));
    for (const ShardPiece& piece : store.pieces()) {
      RETURN_IF_ERROR(ReadTensor(
          reader, store.tensors()[piece.tensor].name, values.kind,
          PlaceOf(store.tensors()[piece.tensor], piece.tensor_offset),
          absl::MakeSpan(
              values.of(piece.segment).data<float>() + piece.range.begin,
              piece.range.size()),
          alive));
    }
  }
  state.step = reader.manifest().step();
  state.data_position = reader.manifest().data_position();
  return PublishMasters(context, state);
}

absl::Status CheckSameData(const CheckpointReader& reader,
                           const v1::JobSpec& spec, const PreparedData& data) {
  const std::string& trained_on = reader.manifest().data_digest();
  if (data.digest() == trained_on) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the data of data.train (",
                   absl::StrJoin(spec.data().train().path(), ", "),
                   ") have changed: their digest is ", data.digest(), ", but ",
                   reader.directory(), " was trained on ", trained_on));
}

}  // namespace lockstep
