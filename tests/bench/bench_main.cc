// lockstep-bench: our training step against the machine's ceiling and against
// PyTorch, in one run, step by step in turn, as ratios of medians.
#include <omp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/memory_count.h"
#include "common/status_macros.h"
#include "tests/bench/bench_model.h"
#include "tests/bench/child.h"
#include "tests/bench/matmul_peak.h"
#include "tests/bench/step_server.h"

namespace lockstep {
namespace {

struct Options {
  std::vector<std::string> models;
  std::vector<std::string> precisions;
  int threads = 2;
  int rounds = 5;
  double peak_seconds = 1.0;
  std::string python = "python3";
  bool compiled = false;
};

struct Contestant {
  std::string name;
  std::unique_ptr<Child> child;
  std::vector<double> seconds;
  double peak_bytes = 0.0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

std::string OwnPath() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return std::string(path, size > 0 ? size : 0);
}

// Starts a contestant and does one step to warm it up; absent if it can't.
std::optional<Contestant> Enter(const std::string& name,
                                const std::vector<std::string>& command) {
  absl::StatusOr<std::unique_ptr<Child>> child = Child::Start(command);
  if (!child.ok()) return std::nullopt;
  const absl::StatusOr<std::string> ready = (*child)->ReadLine();
  if (!ready.ok() || !ready->starts_with("ready")) return std::nullopt;
  if (!(*child)->Ask("step").ok()) return std::nullopt;
  return Contestant{
      absl::StrCat(name, ready->substr(5)), *std::move(child), {}, 0.0};
}

std::vector<Contestant> EnterAll(const Options& options,
                                 const BenchModel& bench,
                                 const std::string& precision) {
  std::vector<Contestant> all;
  const std::string threads = std::to_string(options.threads);
  const auto add = [&](std::optional<Contestant> entered,
                       const std::string& name) {
    if (entered.has_value()) {
      all.push_back(*std::move(entered));
    } else {
      std::cout << "  " << name << ": left out (it does not start)\n";
    }
  };
  add(Enter("lockstep", {OwnPath(), "--serve", "--models", bench.name,
                         "--precisions", precision, "--threads", threads}),
      "lockstep");
  if (std::system(absl::StrCat(options.python,
                               " -c 'import torch' 2> /dev/null > /dev/null")
                      .c_str()) != 0) {
    std::cout << "  PyTorch: left out (" << options.python
              << " has no torch)\n";
    return all;
  }
  std::vector<std::string> peer = {options.python, LOCKSTEP_PEER_SCRIPT,
                                   "--threads", threads};
  for (const std::string& word : bench.PeerArguments()) peer.push_back(word);
  add(Enter("PyTorch eager", peer), "PyTorch eager");
  if (options.compiled) {
    peer.push_back("--compile");
    add(Enter("PyTorch compiled", peer), "PyTorch compiled");
  }
  return all;
}

absl::Status Compare(const Options& options, const BenchModel& bench,
                     const std::string& precision, double peak) {
  std::printf("%s, %s, %d threads, %ld tokens a step\n", bench.name.c_str(),
              precision.c_str(), options.threads,
              static_cast<long>(bench.tokens()));
  std::vector<Contestant> all = EnterAll(options, bench, precision);
  for (int round = 0; round < options.rounds; ++round) {
    for (Contestant& contestant : all) {
      ASSIGN_OR_RETURN(const double seconds, contestant.child->Ask("step"));
      contestant.seconds.push_back(seconds);
    }
  }
  for (Contestant& contestant : all) {
    ASSIGN_OR_RETURN(contestant.peak_bytes, contestant.child->Ask("memory"));
  }
  const double flops =
      TrainingFlopsPerToken(bench.model, bench.training.sequence_length) *
      static_cast<double>(bench.tokens());
  const double ours = Median(all.front().seconds);
  std::printf("  %-28s %10s %12s %10s %10s %10s\n", "", "s/step", "tokens/s",
              "of peak", "ours/it", "GiB");
  for (const Contestant& contestant : all) {
    const double seconds = Median(contestant.seconds);
    std::printf("  %-28s %10.4f %12.0f %9.1f%% %9.2fx %10.2f\n",
                contestant.name.c_str(), seconds,
                static_cast<double>(bench.tokens()) / seconds,
                100.0 * flops / seconds / peak, seconds / ours,
                contestant.peak_bytes / (1 << 30));
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

double PrintPeak(const Options& options, const std::string& precision) {
  const DType dtype = precision == "bf16" ? DType::kBFloat16 : DType::kFloat32;
  MatmulRate best;
  for (const MatmulRate& rate :
       MeasureMatmulRates(dtype, options.peak_seconds)) {
    if (rate.flops_per_second > best.flops_per_second) best = rate;
  }
  if (best.flops_per_second == 0.0) {
    std::printf("oneDNN has no %s product on this machine\n",
                precision.c_str());
    return 1.0;
  }
  std::printf("oneDNN matmul peak, %s, %d threads: %.0f GFLOP/s (%s)\n",
              precision.c_str(), options.threads, best.flops_per_second / 1e9,
              best.what.c_str());
  std::fflush(stdout);
  return best.flops_per_second;
}

absl::Status Run(const Options& options) {
  // Not by a device, which would hold oneDNN to the instructions that the
  // engine uses: the ceiling is what oneDNN itself can do.
  omp_set_num_threads(options.threads);
  for (const std::string& precision : options.precisions) {
    const double peak = PrintPeak(options, precision);
    for (const std::string& name : options.models) {
      ASSIGN_OR_RETURN(
          const BenchModel bench,
          FindBenchModel(name, precision == "bf16" ? v1::PRECISION_BF16
                                                   : v1::PRECISION_FP32));
      RETURN_IF_ERROR(Compare(options, bench, precision, peak));
    }
  }
  return absl::OkStatus();
}

absl::Status Serve(const Options& options) {
  ASSIGN_OR_RETURN(const BenchModel bench,
                   FindBenchModel(options.models.front(),
                                  options.precisions.front() == "bf16"
                                      ? v1::PRECISION_BF16
                                      : v1::PRECISION_FP32));
  return ServeSteps(bench, options.threads);
}

int Main(int argc, char** argv) {
  Options options;
  bool serve = false;
  CLI::App app("Times our training step against oneDNN's peak and PyTorch");
  app.add_option("--models", options.models, "gpt2-124m, kjv, verses")
      ->delimiter(',');
  app.add_option("--precisions", options.precisions, "fp32, bf16")
      ->delimiter(',')
      ->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--threads", options.threads, "compute threads")
      ->check(CLI::Range(1, 1024));
  app.add_option("--rounds", options.rounds, "steps of each contestant")
      ->check(CLI::Range(1, 1000));
  app.add_option("--peak-seconds", options.peak_seconds,
                 "seconds for each matmul shape");
  app.add_option("--python", options.python, "interpreter that has torch");
  app.add_flag("--compiled", options.compiled, "torch.compile, too");
  app.add_flag("--serve", serve, "train a step for each line of input");
  CLI11_PARSE(app, argc, argv);
  if (options.models.empty()) options.models = {"gpt2-124m", "kjv", "verses"};
  if (options.precisions.empty()) options.precisions = {"fp32", "bf16"};
  const absl::Status status = serve ? Serve(options) : Run(options);
  if (!status.ok()) std::cerr << "lockstep-bench: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }
