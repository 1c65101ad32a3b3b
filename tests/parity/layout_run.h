// Trains a small model under a layout, each rank in a process of its own, over
// real process groups: dozens of layouts in seconds. For programs whose first
// process has no threads and no device.
#ifndef LOCKSTEP_TESTS_PARITY_LAYOUT_RUN_H_
#define LOCKSTEP_TESTS_PARITY_LAYOUT_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/model_spec.h"
#include "common/spec/training_spec.h"
#include "kernels/allocator.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {
namespace testing {

struct LayoutRun {
  ModelSpec model;
  TrainingSpec training;
  v1::Layout layout;
  // Samples of a global batch; their lengths and targets differ.
  int64_t global_batch = 10;
  // Tokens of every sample; 0: they differ.
  int64_t length = 0;
  // Samples after which the same ones come again; 0: they never do.
  int64_t distinct = 0;
  int steps = 1;
  int threads = 1;
  // What a rank hands over beside losses, times and memory: all of its values,
  // or nothing.
  enum class Keep { kValues, kTimes };
  Keep keep = Keep::kValues;
  // After the last step the ranks compare what they hold alike; before that,
  // this rank changes one bit of its first tensor called so. -1: none does.
  bool guard = false;
  int flipping_rank = -1;
  std::string flipped;
  // A checkpoint to go on from, and a folder to leave one in; empty: none.
  std::string load_from;
  std::string save_to;
};

struct LayoutResult {
  // By step.
  std::vector<double> losses;
  std::vector<double> norms;
  // Of rank 0's steps.
  std::vector<double> seconds;
  // Logical tensors one after another, whole: gradients of the first step,
  // masters after the last; before the first, masters and optimizer states (all
  // of one kind, then of the next).
  std::vector<float> gradients;
  std::vector<float> masters;
  std::vector<float> start;
  int64_t start_step = 0;
  int64_t start_position = 0;
  // By rank.
  std::vector<MemoryUse> memory;
};

// A layout of one rank, with everything off.
v1::Layout OneRank(int64_t micro_batch);
int64_t WorldSize(const v1::Layout& layout);
// "fsdp2_zero3_dp2".
std::string NameOf(const v1::Layout& layout);

// A model that is small and divides by nothing in particular.
ModelSpec SmallModel(v1::ModelFamily family, v1::Task task);

absl::StatusOr<LayoutResult> RunLayout(const LayoutRun& run);

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_PARITY_LAYOUT_RUN_H_
