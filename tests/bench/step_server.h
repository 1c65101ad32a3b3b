// Our side of the benchmark: trains a step for each line on standard input.
#ifndef LOCKSTEP_TESTS_BENCH_STEP_SERVER_H_
#define LOCKSTEP_TESTS_BENCH_STEP_SERVER_H_

#include "absl/status/status.h"
#include "tests/bench/bench_model.h"

namespace lockstep {

// Speaks peer_torch.py's protocol on standard input and output.
absl::Status ServeSteps(const BenchModel& bench, int threads);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCH_STEP_SERVER_H_
