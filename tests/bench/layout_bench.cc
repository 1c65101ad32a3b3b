// lockstep-bench-layouts: what the data plane costs, as ratios within one run.
//   collectives  all-reduce between two local ranks, ours and Gloo's default,
//   on
//                the same warmed buffers in turn
//   parallel     two ranks of one thread against one rank of two threads
//   memory       model states a rank keeps, against ZeRO's formulas
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/model/logical_tensor.h"
#include "common/model/memory_count.h"
#include "common/status_macros.h"
#include "kernels/device.h"
#include "tests/bench/bench_model.h"
#include "tests/parity/layout_run.h"
#include "tests/testing/file_store.h"
#include "tests/testing/temp_dir.h"
#include "worker/dist/gloo_group_factory.h"

namespace lockstep {
namespace {

using testing::LayoutResult;
using testing::LayoutRun;
using testing::TempDir;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

double SecondsOf(const std::function<void()>& action) {
  const absl::Time begin = absl::Now();
  action();
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

// One of two ranks; rank 0 prints.
absl::Status CompareAllReduce(int rank, const TempDir& folder) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> device,
      MakeCpuDevice({.threads = 1, .cpu_level = DetectCpuLevel()}));
  testing::FileStore store(folder.File("store"));
  GlooGroupFactoryOptions options;
  options.store = &store;
  options.allocator = &device->allocator();
  ASSIGN_OR_RETURN(const auto factory, GlooGroupFactory::Create(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<ProcessGroup> group,
                   factory->Make({"bench", rank, 2, "bench"}));
  auto gloo_store = gloo::rendezvous::FileStore(folder.File("gloo"));
  auto gloo_context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  auto gloo_device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  gloo_context->connectFullMesh(gloo_store, gloo_device);

  for (const int64_t bytes : {int64_t{4} << 10, int64_t{256} << 10,
                              int64_t{4} << 20, int64_t{100'000'000}}) {
    const int64_t elements = bytes / 4;
    std::vector<float> values(elements, 1.0f);
    const Tensor tensor(values.data(), DType::kFloat32, {elements},
                        DeviceKind::kCpu);
    const int rounds = bytes < (1 << 20) ? 300 : bytes < (10 << 20) ? 40 : 9;
    std::vector<double> ours, theirs;
    for (int round = 0; round < rounds + 2; ++round) {
      std::fill(values.begin(), values.end(), 1.0f);
      RETURN_IF_ERROR(group->Barrier()->Wait());
      absl::Status status;
      const double own = SecondsOf(
          [&] { status = group->AllReduce(tensor, ReduceOp::kSum)->Wait(); });
      RETURN_IF_ERROR(status);
      RETURN_IF_ERROR(group->Barrier()->Wait());
      const double gloos = SecondsOf([&] {
        gloo::AllreduceOptions reduce(gloo_context);
        reduce.setOutput(values.data(), values.size());
        reduce.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, size_t)>(
                &gloo::sum<float>));
        gloo::allreduce(reduce);
      });
      // The first ones warm up.
      if (round < 2) continue;
      ours.push_back(own);
      theirs.push_back(gloos);
    }
    if (rank > 0) continue;
    const double own = Median(ours), gloos = Median(theirs);
    std::printf("%12lld %11.1f us %11.1f us %8.2f GB/s %8.2f GB/s %8.2fx\n",
                static_cast<long long>(bytes), own * 1e6, gloos * 1e6,
                bytes / own / 1e9, bytes / gloos / 1e9, gloos / own);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

int BenchCollectives() {
  std::printf(
      "all-reduce between two local ranks, fp32\n%12s %14s %14s %13s "
      "%13s %9s\n",
      "bytes", "ours", "gloo", "ours", "gloo", "ratio");
  std::fflush(stdout);
  const TempDir folder;
  std::filesystem::create_directories(folder.File("store"));
  std::filesystem::create_directories(folder.File("gloo"));
  std::vector<pid_t> pids;
  for (int rank = 0; rank < 2; ++rank) {
    pids.push_back(fork());
    if (pids.back() != 0) continue;
    const absl::Status status = CompareAllReduce(rank, folder);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    }
    std::fflush(stdout);
    _exit(status.ok() ? 0 : 1);
  }
  int failed = 0;
  for (const pid_t pid : pids) {
    int exit = -1;
    failed |= waitpid(pid, &exit, 0) != pid || exit != 0;
  }
  return failed;
}

struct Way {
  const char* name;
  int64_t global_batch;
  int64_t micro_batch;
  int threads;
  void (*set)(v1::Layout&);
};

absl::StatusOr<double> StepSeconds(const BenchModel& bench, const Way& way,
                                   int steps) {
  LayoutRun run;
  run.model = bench.model;
  run.training = bench.training;
  run.training.global_batch = way.global_batch;
  run.layout = testing::OneRank(way.micro_batch);
  way.set(run.layout);
  run.global_batch = way.global_batch;
  run.length = bench.training.sequence_length;
  run.threads = way.threads;
  run.keep = testing::LayoutRun::Keep::kTimes;
  run.steps = steps;
  ASSIGN_OR_RETURN(const LayoutResult result, testing::RunLayout(run));
  // The first one warms up.
  return Median({result.seconds.begin() + 1, result.seconds.end()});
}

absl::Status BenchParallel(const std::string& model, int steps) {
  ASSIGN_OR_RETURN(const BenchModel bench,
                   FindBenchModel(model, v1::PRECISION_FP32));
  const std::vector<Way> ways = {
      {"one rank, 2 threads", 4, 4, 2, [](v1::Layout&) {}},
      {"dp 2", 4, 2, 1, [](v1::Layout& layout) { layout.set_dp(2); }},
      {"fsdp 2", 4, 2, 1, [](v1::Layout& layout) { layout.set_fsdp(2); }},
      {"tp 2", 4, 4, 1,
       [](v1::Layout& layout) {
         layout.set_tp(2);
         layout.set_sequence_parallel(true);
       }},
      {"cp 2 ring", 4, 4, 1,
       [](v1::Layout& layout) {
         layout.set_cp(2);
         layout.set_cp_kind(v1::CONTEXT_PARALLEL_KIND_RING);
       }},
      {"one rank, 2 threads", 16, 4, 2, [](v1::Layout&) {}},
      {"pp 2, 1f1b", 16, 2, 1,
       [](v1::Layout& layout) {
         layout.set_pp(2);
         layout.set_schedule(v1::PIPELINE_SCHEDULE_1F1B);
       }},
      {"pp 2, zero bubble", 16, 2, 1, [](v1::Layout& layout) {
         layout.set_pp(2);
         layout.set_schedule(v1::PIPELINE_SCHEDULE_ZERO_BUBBLE);
       }}};
  std::printf("%s, fp32, %d timed steps each\n  %-22s %6s %10s %12s %10s\n",
              model.c_str(), steps - 1, "", "batch", "s/step", "tokens/s",
              "of one");
  double one = 0.0;
  int64_t batch = 0;
  for (const Way& way : ways) {
    ASSIGN_OR_RETURN(const double seconds, StepSeconds(bench, way, steps));
    if (way.global_batch != batch) one = seconds;
    batch = way.global_batch;
    std::printf("  %-22s %6lld %10.3f %12.0f %9.1f%%\n", way.name,
                static_cast<long long>(batch), seconds,
                batch * bench.training.sequence_length / seconds,
                100.0 * one / seconds);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status BenchMemory() {
  std::printf(
      "model states a rank keeps, bytes per parameter (measured / "
      "formula), and the counted peak\n  %-6s %-6s %5s %20s %12s\n",
      "", "stage", "ranks", "states", "peak MiB");
  for (const v1::Precision precision :
       {v1::PRECISION_FP32, v1::PRECISION_BF16}) {
    const bool bf16 = precision == v1::PRECISION_BF16;
    const double w = bf16 ? 2 : 4, g = 4, k = bf16 ? 12 : 8;
    for (const int64_t stage : {1, 2, 3}) {
      for (const int64_t ranks : {1, 2, 4, 8}) {
        LayoutRun run;
        ASSIGN_OR_RETURN(const BenchModel bench,
                         FindBenchModel("kjv", precision));
        run.model = bench.model;
        run.training = bench.training;
        run.training.global_batch = run.global_batch = 8;
        run.length = run.training.sequence_length;
        run.layout = testing::OneRank(1);
        run.layout.set_fsdp(ranks);
        run.layout.set_zero_stage(stage);
        run.keep = LayoutRun::Keep::kTimes;
        ASSIGN_OR_RETURN(const LayoutResult result, testing::RunLayout(run));
        const auto count = static_cast<double>(ParameterCount(run.model));
        const auto peak = [&](MemoryCategory category) {
          return static_cast<double>(
              result.memory[0]
                  .by_category[static_cast<size_t>(category)]
                  .peak_bytes);
        };
        const double states = peak(MemoryCategory::kParameter) +
                              peak(MemoryCategory::kGradient) +
                              peak(MemoryCategory::kOptimizerState);
        const auto d = static_cast<double>(ranks);
        const double formula =
            w / (stage == 3 ? d : 1) + g / (stage >= 2 ? d : 1) + k / d;
        std::printf(
            "  %-6s %-6lld %5lld %9.2f / %8.2f %12.1f\n",
            bf16 ? "bf16" : "fp32", static_cast<long long>(stage),
            static_cast<long long>(ranks), states / count, formula,
            static_cast<double>(result.memory[0].total.peak_bytes) / 1048576.0);
        std::fflush(stdout);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  CLI::App app("Times the data plane, and weighs what ranks keep");
  app.require_subcommand(1);
  const auto* collectives =
      app.add_subcommand("collectives", "ours against Gloo's all-reduce");
  auto* parallel =
      app.add_subcommand("parallel", "two ranks against one of two threads");
  std::string model = "gpt2-124m";
  int steps = 4;
  parallel->add_option("--model", model, "gpt2-124m, kjv, verses");
  parallel->add_option("--steps", steps, "steps of each, the first to warm up")
      ->check(CLI::Range(2, 1000));
  app.add_subcommand("memory", "model states against ZeRO's formulas");
  CLI11_PARSE(app, argc, argv);
  if (collectives->parsed()) return lockstep::BenchCollectives();
  const absl::Status status = parallel->parsed()
                                  ? lockstep::BenchParallel(model, steps)
                                  : lockstep::BenchMemory();
  if (status.ok()) return 0;
  std::fprintf(stderr, "lockstep-bench-layouts: %s\n",
               std::string(status.message()).c_str());
  return 1;
}
