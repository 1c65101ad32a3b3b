#include "tests/parity/layout_run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/model/logical_tensor.h"
#include "common/status_macros.h"
#include "kernels/device.h"
#include "tests/testing/file_store.h"
#include "tests/testing/temp_dir.h"
#include "worker/data/sample_order.h"
#include "worker/dist/device_mesh.h"
#include "worker/dist/gloo_group_factory.h"
#include "worker/train/checkpointing.h"
#include "worker/train/guard.h"
#include "worker/train/rank_context.h"
#include "worker/train/train_step.h"
#include "worker/train/training_state.h"

namespace lockstep {
namespace testing {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

std::string ResultPath(const TempDir& folder, int rank) {
  return folder.File(absl::StrCat("rank-", rank));
}

class SilentReporter : public Reporter {
 public:
  void Report(v1::RankReport report) override {}
  void SetProgress(int64_t step, v1::Progress progress) override {}
};

// Sample `number` of the global sequence: its length and its invalid targets
// depend on that alone.
void AppendSample(const LayoutRun& run, int64_t number, MicroBatch& batch) {
  const int64_t s = run.distinct > 0 ? number % run.distinct : number;
  const ModelSpec& spec = run.model;
  const auto length =
      static_cast<int32_t>(run.length > 0 ? run.length : 5 + (s * 7) % 31);
  for (int32_t t = 0; t < length; ++t) {
    batch.tokens.push_back(
        static_cast<int32_t>((s * 31 + t * t * 7 + t) % spec.vocabulary));
    batch.positions.push_back(t);
    batch.sample_positions.push_back(t);
    batch.samples.push_back(static_cast<uint32_t>(number));
    if (spec.task == v1::TASK_LANGUAGE_MODEL) {
      batch.targets.push_back(
          (t + s) % 5 == 0
              ? -1
              : static_cast<int32_t>((s * 3 + t * 5) % spec.vocabulary));
    }
  }
  if (spec.task == v1::TASK_CLASSIFICATION) {
    batch.targets.push_back(static_cast<int32_t>(s % spec.classes));
  }
  for (std::vector<int32_t>* bounds :
       {&batch.segment_bounds, &batch.sample_bounds}) {
    if (bounds->empty()) bounds->push_back(0);
    bounds->push_back(static_cast<int32_t>(batch.tokens.size()));
  }
  batch.max_segment_rows = std::max<int64_t>(batch.max_segment_rows, length);
}

StepBatch BatchOf(const LayoutRun& run, const DataShare& share, int step) {
  const int64_t first = step * run.global_batch;
  MicroBatch whole;
  for (int64_t s = 0; s < run.global_batch; ++s) {
    AppendSample(run, first + s, whole);
  }
  StepBatch batch;
  batch.first_position = first;
  batch.samples = run.global_batch;
  batch.valid_targets =
      std::count_if(whole.targets.begin(), whole.targets.end(),
                    [](int32_t target) { return target >= 0; });
  const int64_t micro_batch = run.layout.micro_batch();
  const BatchShare own = ShareOf(run.global_batch, share.index, share.count);
  for (int64_t s = own.first; s < own.last; ++s) {
    if ((s - own.first) % micro_batch == 0) batch.micro_batches.emplace_back();
    AppendSample(run, first + s, batch.micro_batches.back());
  }
  const int64_t largest = (run.global_batch + share.count - 1) / share.count;
  batch.most_micro_batches = (largest + micro_batch - 1) / micro_batch;
  for (const MicroBatch& made : batch.micro_batches) batch.rows += made.rows();
  return batch;
}

// What a rank found, as its process hands it over: flat arrays, each after its
// number of elements.
class ResultFile {
 public:
  explicit ResultFile(const std::string& path) : path_(path) {}

  template <typename T>
  void Add(const std::vector<T>& values) {
    const auto count = static_cast<int64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(&count), sizeof(count));
    bytes_.append(reinterpret_cast<const char*>(values.data()),
                  values.size() * sizeof(T));
  }
  void Write() const { std::ofstream(path_, std::ios::binary) << bytes_; }

  // False where the rank didn't come so far.
  bool Read() {
    std::ifstream file(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    return !bytes_.empty();
  }
  template <typename T>
  std::vector<T> Next() {
    int64_t count = 0;
    std::memcpy(&count, bytes_.data() + next_, sizeof(count));
    next_ += sizeof(count);
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes_.data() + next_, count * sizeof(T));
    next_ += count * sizeof(T);
    return values;
  }

 private:
  const std::string path_;
  std::string bytes_;
  size_t next_ = 0;
};

// This rank's shards, each piece of a logical tensor after where it lies in all
// of them.
template <typename ShardOf>
void AddPieces(const LayoutRun& run, const ParameterStore& store,
               const ShardOf& shard_of, ResultFile& file) {
  std::vector<int64_t> begins = {0};
  for (const LogicalTensor& tensor : DescribeModel(run.model)) {
    begins.push_back(begins.back() + tensor.elements());
  }
  std::vector<int64_t> offsets;
  std::vector<float> values;
  for (const ShardPiece& piece : store.pieces()) {
    if (run.keep == LayoutRun::Keep::kTimes) break;
    const LogicalTensor& tensor = store.tensors()[piece.tensor];
    ForEachRun(tensor, piece.tensor_offset, piece.range.size(),
               [&](int64_t whole, int64_t held, int64_t elements) {
                 offsets.push_back(begins[tensor.index] + whole);
                 offsets.push_back(elements);
               });
    const float* from =
        shard_of(piece.segment).template data<float>() + piece.range.begin;
    values.insert(values.end(), from, from + piece.range.size());
  }
  file.Add(offsets);
  file.Add(values);
}

void TakePieces(ResultFile& file, float* whole) {
  const std::vector<int64_t> offsets = file.Next<int64_t>();
  const std::vector<float> values = file.Next<float>();
  const float* next = values.data();
  for (size_t i = 0; i < offsets.size(); i += 2) {
    std::copy_n(next, offsets[i + 1], whole + offsets[i]);
    next += offsets[i + 1];
  }
}

// The samples of a rank: all but those of fsdp and dp have the same.
DataShare ShareOfRank(const DeviceMesh& mesh) {
  const int fsdp = mesh.degree(MeshAxis::kFsdp);
  return {
      mesh.coordinate(MeshAxis::kDp) * fsdp + mesh.coordinate(MeshAxis::kFsdp),
      mesh.degree(MeshAxis::kDp) * fsdp};
}

void FlipBit(const ParameterStore& store, const std::string& name) {
  for (const ShardPiece& piece : store.pieces()) {
    if (store.tensors()[piece.tensor].name != name) continue;
    uint32_t& bits =
        store.master(piece.segment).data<uint32_t>()[piece.range.begin];
    bits ^= 1;
    return;
  }
}

absl::Status Train(const LayoutRun& run, int rank, Store& store,
                   ResultFile& file) {
  DeviceOptions options;
  options.cpu_level = DetectCpuLevel();
  options.threads = run.threads;
  options.passive_waiting = WorldSize(run.layout) > 1;
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   MakeCpuDevice(options));
  GlooGroupFactoryOptions group_options;
  group_options.store = &store;
  group_options.allocator = &device->allocator();
  group_options.connect_timeout = kTimeout;
  group_options.collective_timeout = kTimeout;
  ASSIGN_OR_RETURN(const std::unique_ptr<GlooGroupFactory> factory,
                   GlooGroupFactory::Create(group_options));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<DeviceMesh> mesh,
      DeviceMesh::Create(run.layout, rank,
                         static_cast<int>(WorldSize(run.layout)), *factory));
  SilentReporter reporter;
  const RankContext context = {GroupsOf(*mesh),    *device,  run.layout,
                               ShareOfRank(*mesh), reporter, RealClock()};
  ASSIGN_OR_RETURN(
      TrainingState state,
      MakeTrainingState(context, run.model, run.training, Purpose::kTrain));
  if (run.load_from.empty()) {
    RETURN_IF_ERROR(Initialize(context, state));
  } else {
    ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                     CheckpointReader::Open(run.load_from, [] {}));
    RETURN_IF_ERROR(LoadCheckpoint(context, *reader, state));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainStep> step,
                   TrainStep::Create(context, state, 50));
  const ParameterStore& parameters = *state.store;
  file.Add(std::vector<int64_t>{state.step, state.data_position});
  AddPieces(
      run, parameters, [&](int s) { return parameters.master(s); }, file);
  for (const OptimizerState& states : state.optimizer->states()) {
    AddPieces(
        run, parameters,
        [&](int s) {
          return states.values.Slice(parameters.shard_begin(s),
                                     parameters.segments()[s].shard_elements);
        },
        file);
  }
  std::vector<double> losses, norms, seconds;
  const int64_t start = state.step;
  while (state.step < start + run.steps) {
    const StepBatch batch =
        BatchOf(run, context.share, static_cast<int>(state.step));
    if (state.step == start) {
      // The same gradients again are those of the step.
      if (run.keep == LayoutRun::Keep::kValues) {
        RETURN_IF_ERROR(step->AccumulateGradients(batch).status());
      }
      AddPieces(
          run, parameters, [&](int s) { return parameters.gradient(s); }, file);
    }
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(const StepResult done, step->Run(batch));
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
    losses.push_back(done.loss);
    norms.push_back(done.grad_norm);
  }
  if (run.guard) {
    if (rank == run.flipping_rank) FlipBit(parameters, run.flipped);
    RETURN_IF_ERROR(CheckEqualAcrossRanks(context, state));
  }
  if (!run.save_to.empty()) {
    CheckpointFacts facts;
    facts.job_dir = run.save_to;
    facts.job = "layout";
    facts.generation = 1;
    RETURN_IF_ERROR(SaveCheckpoint(context, state, facts));
  }
  RETURN_IF_ERROR(context.world.Barrier()->Wait());
  AddPieces(
      run, parameters, [&](int s) { return parameters.master(s); }, file);
  file.Add(losses);
  file.Add(norms);
  file.Add(seconds);
  const MemoryUse use = device->allocator().Use();
  std::vector<int64_t> peaks = {use.total.peak_bytes};
  for (const MemoryCount& count : use.by_category) {
    peaks.push_back(count.peak_bytes);
  }
  file.Add(peaks);
  file.Write();
  return absl::OkStatus();
}

// One rank's process: a device is a process's only one.
[[noreturn]] void RankMain(const LayoutRun& run, int rank,
                           const TempDir& folder) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::filesystem::create_directories(folder.File("store"));
  FileStore store(folder.File("store"));
  ResultFile file(ResultPath(folder, rank));
  const absl::Status status = Train(run, rank, store, file);
  if (!status.ok()) {
    std::ofstream(ResultPath(folder, rank) + ".error") << status.message();
  }
  _exit(status.ok() ? 0 : 1);
}

}  // namespace

v1::Layout OneRank(int64_t micro_batch) {
  v1::Layout layout;
  layout.set_dp(1);
  layout.set_fsdp(1);
  layout.set_zero_stage(3);
  layout.set_cp(1);
  layout.set_tp(1);
  layout.set_pp(1);
  layout.set_virtual_stages(1);
  layout.set_micro_batch(micro_batch);
  return layout;
}

int64_t WorldSize(const v1::Layout& layout) {
  return layout.dp() * layout.fsdp() * layout.cp() * layout.tp() * layout.pp();
}

std::string NameOf(const v1::Layout& layout) {
  std::string name;
  if (layout.dp() > 1) absl::StrAppend(&name, "Dp", layout.dp());
  if (layout.fsdp() > 1) {
    absl::StrAppend(&name, "Fsdp", layout.fsdp(), "Zero", layout.zero_stage());
  }
  if (layout.tp() > 1) {
    absl::StrAppend(&name, "Tp", layout.tp(),
                    layout.sequence_parallel() ? "Seq" : "");
  }
  if (layout.cp() > 1) {
    absl::StrAppend(&name,
                    layout.cp_kind() == v1::CONTEXT_PARALLEL_KIND_ULYSSES
                        ? "Ulysses"
                        : "Ring",
                    layout.cp());
    if (layout.fsdp() == 1) {
      absl::StrAppend(&name, "Zero", layout.zero_stage());
    }
  }
  if (layout.pp() > 1) {
    static constexpr const char* kSchedules[] = {"", "GPipe", "1F1B", "Inter",
                                                 "Zb"};
    absl::StrAppend(&name, "Pp", layout.pp(), kSchedules[layout.schedule()],
                    layout.virtual_stages() > 1 ? layout.virtual_stages() : 0);
  }
  name =
      absl::StrCat(name.empty() ? "One" : name, "Micro", layout.micro_batch());
  switch (layout.activation_checkpoint()) {
    case v1::ACTIVATION_CHECKPOINT_FULL:
      return absl::StrCat(name, "Full");
    case v1::ACTIVATION_CHECKPOINT_SELECTIVE:
      return absl::StrCat(name, "Selective");
    default:
      return name;
  }
}

ModelSpec SmallModel(v1::ModelFamily family, v1::Task task) {
  ModelSpec spec;
  spec.family = family;
  spec.task = task;
  spec.layers = 2;
  spec.width = 48;
  spec.heads = 4;
  spec.kv_heads = family == v1::MODEL_FAMILY_LLAMA ? 2 : 4;
  spec.head_width = 12;
  spec.feed_forward_width = 100;
  spec.vocabulary = 61;
  spec.maximum_positions = 40;
  spec.classes = task == v1::TASK_CLASSIFICATION ? 3 : 0;
  spec.dropout = 0.1;
  spec.attention_bias = family == v1::MODEL_FAMILY_GPT2;
  return spec;
}

absl::StatusOr<LayoutResult> RunLayout(const LayoutRun& run) {
  const auto size = static_cast<int>(WorldSize(run.layout));
  const TempDir folder;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    pids.push_back(fork());
    if (pids.back() == 0) RankMain(run, rank, folder);
  }
  bool failed = false;
  for (const pid_t pid : pids) {
    int exit = -1;
    failed |= waitpid(pid, &exit, 0) != pid || exit != 0;
  }
  if (failed) {
    std::string errors;
    for (int rank = 0; rank < size; ++rank) {
      std::ifstream file(ResultPath(folder, rank) + ".error");
      if (!file) continue;
      absl::StrAppend(&errors, "; rank ", rank, ": ",
                      std::string(std::istreambuf_iterator<char>(file), {}));
    }
    return absl::InternalError(
        absl::StrCat(NameOf(run.layout), ": a rank failed", errors));
  }
  LayoutResult result;
  int64_t elements = 0;
  for (const LogicalTensor& tensor : DescribeModel(run.model)) {
    elements += tensor.elements();
  }
  result.gradients.resize(elements);
  result.masters.resize(elements);
  const bool two_moments =
      run.training.optimizer.name == v1::OPTIMIZER_NAME_ADAMW ||
      run.training.optimizer.name == v1::OPTIMIZER_NAME_LAMB;
  result.start.resize((two_moments ? 3 : 2) * elements);
  for (int rank = 0; rank < size; ++rank) {
    ResultFile file(ResultPath(folder, rank));
    if (!file.Read()) return absl::InternalError("a rank left no result");
    const std::vector<int64_t> start = file.Next<int64_t>();
    result.start_step = start[0];
    result.start_position = start[1];
    for (size_t kind = 0; kind < result.start.size() / elements; ++kind) {
      TakePieces(file, result.start.data() + kind * elements);
    }
    TakePieces(file, result.gradients.data());
    TakePieces(file, result.masters.data());
    const std::vector<double> losses = file.Next<double>();
    const std::vector<double> norms = file.Next<double>();
    if (rank > 0 && (losses != result.losses || norms != result.norms)) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " has other losses than rank 0"));
    }
    result.losses = losses;
    result.norms = norms;
    const std::vector<double> seconds = file.Next<double>();
    if (rank == 0) result.seconds = seconds;
    const std::vector<int64_t> peaks = file.Next<int64_t>();
    MemoryUse use;
    use.total.peak_bytes = peaks[0];
    for (size_t i = 0; i < use.by_category.size(); ++i) {
      use.by_category[i].peak_bytes = peaks[i + 1];
    }
    result.memory.push_back(use);
  }
  return result;
}

}  // namespace testing
}  // namespace lockstep
