#include "worker/parallel/data/ddp.h"

namespace lockstep {

Ddp::Ddp(ProcessGroup& group, const ParameterStore& store, int64_t bucket_bytes)
    : group_(group),
      store_(store),
      buckets_(PlanBuckets(store, bucket_bytes)) {}

void Ddp::BeginMicroBatch(Turn turn) { turn_ = turn; }

absl::Status Ddp::BeforeUnit(int unit, Pass pass) { return absl::OkStatus(); }

absl::Status Ddp::AfterUnit(int unit, Pass pass) {
  if (pass == Pass::kBackward && turn_ == Turn::kLast) FlushDownTo(unit);
  return absl::OkStatus();
}

absl::Status Ddp::PublishParameters() { return absl::OkStatus(); }

void Ddp::FlushDownTo(int unit) {
  while (next_bucket_ < buckets_.size() &&
         buckets_[next_bucket_].last_unit >= unit) {
    const FlatRange range = buckets_[next_bucket_].range;
    pending_.push_back(group_.AllReduce(
        store_.gradient().Slice(range.begin, range.end - range.begin),
        ReduceOp::kSum));
    ++next_bucket_;
  }
}

absl::Status Ddp::FinishGradients() {
  absl::Status status;
  for (const std::unique_ptr<Work>& work : pending_) {
    status.Update(work->Wait());
  }
  pending_.clear();
  next_bucket_ = 0;
  turn_ = Turn::kAccumulate;
  return status;
}

}  // namespace lockstep
