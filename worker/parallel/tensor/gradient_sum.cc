#include "worker/parallel/tensor/gradient_sum.h"

#include <string>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

class GradientSum : public DataParallel {
 public:
  // summed: by unit; empty where a unit has none.
  GradientSum(ProcessGroup& group, std::vector<Parameter> summed,
              bool in_each_micro_batch, std::unique_ptr<DataParallel> inner)
      : group_(group),
        summed_(std::move(summed)),
        in_each_micro_batch_(in_each_micro_batch),
        inner_(std::move(inner)) {}

  void BeginMicroBatch(Turn turn) override {
    turn_ = turn;
    inner_->BeginMicroBatch(turn);
  }
  absl::Status BeforeUnit(int unit, Pass pass) override {
    return inner_->BeforeUnit(unit, pass);
  }
  absl::Status AfterUnit(int unit, Pass pass) override {
    const bool makes_vectors =
        pass == Pass::kBackward || pass == Pass::kBackwardInput;
    if (makes_vectors && !summed_[unit].empty() &&
        (in_each_micro_batch_ || turn_ == Turn::kLast)) {
      RETURN_IF_ERROR(
          group_.AllReduce(summed_[unit].gradient(), ReduceOp::kSum)->Wait());
    }
    return inner_->AfterUnit(unit, pass);
  }
  absl::Status FinishGradients() override { return inner_->FinishGradients(); }
  absl::Status PublishParameters() override {
    return inner_->PublishParameters();
  }

 private:
  ProcessGroup& group_;
  const std::vector<Parameter> summed_;
  // Whole gradients are those of one micro-batch, or of all so far.
  const bool in_each_micro_batch_;
  const std::unique_ptr<DataParallel> inner_;
  Turn turn_ = Turn::kAccumulate;
};

}  // namespace

std::unique_ptr<DataParallel> WithGradientSum(
    ProcessGroup& group, const ParameterStore& store,
    std::unique_ptr<DataParallel> inner) {
  std::vector<std::vector<std::string>> names(store.units());
  bool any = false;
  for (const LogicalTensor& tensor : store.tensors()) {
    if (!tensor.summed_over_tp) continue;
    names[tensor.unit].push_back(tensor.name);
    any = true;
  }
  if (!any) return inner;
  std::vector<Parameter> summed;
  for (const std::vector<std::string>& of_unit : names) {
    summed.push_back(of_unit.empty() ? Parameter() : store.Stacked(of_unit));
  }
  return std::make_unique<GradientSum>(
      group, std::move(summed), store.sharding().stage >= 2, std::move(inner));
}

}  // namespace lockstep
