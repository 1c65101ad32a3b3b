#include "worker/nn/unit_observer.h"

#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::Status Visit(int unit, Pass pass, UnitObserver& observer) {
  RETURN_IF_ERROR(observer.BeforeUnit(unit, pass));
  return observer.AfterUnit(unit, pass);
}

}  // namespace

absl::Status VisitForTraining(int units, UnitObserver& observer) {
  for (int unit = 0; unit + 1 < units; ++unit) {
    RETURN_IF_ERROR(Visit(unit, Pass::kForward, observer));
  }
  for (int unit = units - 1; unit >= 0; --unit) {
    RETURN_IF_ERROR(Visit(unit, Pass::kBackward, observer));
  }
  return absl::OkStatus();
}

absl::Status VisitForward(int units, UnitObserver& observer) {
  for (int unit = 0; unit < units; ++unit) {
    RETURN_IF_ERROR(Visit(unit, Pass::kForward, observer));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
