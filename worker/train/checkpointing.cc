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

struct NamedArena {
  std::string kind;
  Tensor values;
};

std::vector<NamedArena> Arenas(const TrainingState& state) {
  std::vector<NamedArena> arenas = {{"parameter", state.store->master()}};
  if (state.optimizer != nullptr) {
    for (const OptimizerState& states : state.optimizer->states()) {
      arenas.push_back({states.kind, states.values});
    }
  }
  return arenas;
}

// The slices of `range` of the flat arenas, cut at logical tensors.
std::vector<TensorSlice> SlicesOf(const TrainingState& state, FlatRange range) {
  std::vector<TensorSlice> slices;
  const ParameterStore& store = *state.store;
  for (const NamedArena& arena : Arenas(state)) {
    for (size_t i = 0; i < store.tensors().size(); ++i) {
      const FlatRange tensor = store.range(static_cast<int>(i));
      const int64_t begin = std::max(range.begin, tensor.begin);
      const int64_t end = std::min(range.end, tensor.end);
      if (begin >= end) continue;
      slices.push_back({store.tensors()[i].name, arena.kind,
                        store.tensors()[i].shape, begin - tensor.begin,
                        absl::MakeConstSpan(arena.values.data<float>() + begin,
                                            end - begin)});
    }
  }
  return slices;
}

// Elements read at a time, 16 MiB: a second or less of a slow disk.
constexpr int64_t kReadElements = int64_t{4} << 20;

// Reads `values`, all of tensor `name`, block by block.
absl::Status ReadTensor(const CheckpointReader& reader, const std::string& name,
                        const std::string& kind, absl::Span<float> values,
                        const std::function<void()>& alive) {
  const auto elements = static_cast<int64_t>(values.size());
  for (int64_t offset = 0; offset < elements; offset += kReadElements) {
    alive();
    RETURN_IF_ERROR(
        reader.Read(name, kind, offset, values.subspan(offset, kReadElements)));
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
  const int rank = context.world.rank(), size = context.world.size();
  const int64_t elements = state.store->elements();
  // Replicas hold the same values: each writes an equal part of them.
  const FlatRange part = {elements * rank / size, elements * (rank + 1) / size};
  ASSIGN_OR_RETURN(const ShardDescription shard,
                   WriteShard(TemporaryCheckpointPath(facts.job_dir, state.step,
                                                      facts.generation),
                              rank, SlicesOf(state, part), [&] {
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
  for (const NamedArena& arena : Arenas(state)) {
    for (size_t i = 0; i < store.tensors().size(); ++i) {
      const LogicalTensor& tensor = store.tensors()[i];
      if (!reader.Contains(tensor.name, arena.kind)) {
        return absl::FailedPreconditionError(absl::StrCat(
            reader.directory(), " has no ", arena.kind, " of ", tensor.name));
      }
      const std::vector<int64_t> stored = reader.Shape(tensor.name, arena.kind);
      if (stored != tensor.shape) {
        return absl::FailedPreconditionError(absl::StrCat(
            reader.directory(), ": ", arena.kind, " of ", tensor.name,
            " has shape (", absl::StrJoin(stored, ", "), "), the model's has (",
            absl::StrJoin(tensor.shape, ", "), ")"));
      }
      const FlatRange range = store.range(static_cast<int>(i));
      RETURN_IF_ERROR(
          ReadTensor(reader, tensor.name, arena.kind,
                     absl::MakeSpan(arena.values.data<float>() + range.begin,
                                    range.end - range.begin),
                     alive));
    }
  }
  state.step = reader.manifest().step();
  state.data_position = reader.manifest().data_position();
  return state.store->RefreshCompute(context.device.stream());
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
