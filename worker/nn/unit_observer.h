// UnitObserver: how parallel wrappers take part in a model's passes, unit by
// unit, while the model stays single-device code.
#ifndef LOCKSTEP_WORKER_NN_UNIT_OBSERVER_H_
#define LOCKSTEP_WORKER_NN_UNIT_OBSERVER_H_

#include <cstdint>

#include "absl/status/status.h"

namespace lockstep {

// In training a pass visits units 0 to L forward, then the head (unit L + 1)
// and units L to 0 backward: the head makes its gradient in the same sweep as
// its loss. Without gradients it visits all forward. A pipeline stage visits
// its own units so; embedding and head always go backward in one visit.
enum class Pass : uint8_t {
  kForward,
  kBackward,
  // Backward in two visits: gradients of the input and of vectors, then, when
  // the schedule says so, those of matrices.
  kBackwardInput,
  kBackwardWeights,
};

class UnitObserver {
 public:
  virtual ~UnitObserver() = default;
  // The unit's parameters, and backward its gradients, must be there when this
  // returns. The head of a model with tied embeddings uses unit 0's too.
  virtual absl::Status BeforeUnit(int unit, Pass pass) = 0;
  // The unit is done with them. Backward, what this micro-batch adds to its
  // gradients is complete, but for tied embeddings: unit 0 completes them.
  virtual absl::Status AfterUnit(int unit, Pass pass) = 0;
};

// For one device.
class NoObserver : public UnitObserver {
 public:
  absl::Status BeforeUnit(int unit, Pass pass) override {
    return absl::OkStatus();
  }
  absl::Status AfterUnit(int unit, Pass pass) override {
    return absl::OkStatus();
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_UNIT_OBSERVER_H_
