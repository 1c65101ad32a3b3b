// The models that the benchmark trains, ours and the peer's alike.
#ifndef LOCKSTEP_TESTS_BENCH_BENCH_MODEL_H_
#define LOCKSTEP_TESTS_BENCH_BENCH_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/model_spec.h"
#include "common/spec/training_spec.h"

namespace lockstep {

struct BenchModel {
  std::string name;
  ModelSpec model;
  TrainingSpec training;
  int64_t tokens() const {
    return training.global_batch * training.sequence_length;
  }
  // Arguments of peer_torch.py.
  std::vector<std::string> PeerArguments() const;
};

// "gpt2-124m", and the shapes of the examples: "kjv", "verses".
absl::StatusOr<BenchModel> FindBenchModel(const std::string& name,
                                          Precision precision);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCH_BENCH_MODEL_H_
