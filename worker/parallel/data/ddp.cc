#include "worker/parallel/data/ddp.h"

#include <algorithm>

namespace lockstep {

Ddp::Ddp(ProcessGroup& group, const ParameterStore& store, int64_t bucket_bytes)
    : group_(group),
      store_(store),
      buckets_(PlanBuckets(store, bucket_bytes)),
      complete_(store.units()) {
  Reset();
}

void Ddp::BeginMicroBatch(Turn turn) { turn_ = turn; }

absl::Status Ddp::BeforeUnit(int unit, Pass pass) { return absl::OkStatus(); }

absl::Status Ddp::AfterUnit(int unit, Pass pass) {
  if (turn_ == Turn::kLast &&
      (pass == Pass::kBackward || pass == Pass::kBackwardWeights)) {
    complete_[unit] = true;
    Flush();
  }
  return absl::OkStatus();
}

absl::Status Ddp::PublishParameters() { return absl::OkStatus(); }

void Ddp::Flush() {
  while (next_bucket_ < buckets_.size()) {
    const GradientBucket& bucket = buckets_[next_bucket_];
    for (int unit = bucket.last_unit; unit <= bucket.first_unit; ++unit) {
      if (!complete_[unit]) return;
    }
    pending_.push_back(group_.AllReduce(
        store_.gradient().Slice(bucket.range.begin, bucket.range.size()),
        ReduceOp::kSum));
    ++next_bucket_;
  }
}

void Ddp::Reset() {
  next_bucket_ = 0;
  turn_ = Turn::kAccumulate;
  // Nothing is to come from units that this rank doesn't hold.
  std::fill(complete_.begin(), complete_.end(), true);
  for (const Segment& segment : store_.segments()) {
    complete_[segment.unit] = false;
  }
}

absl::Status Ddp::FinishGradients() {
  absl::Status status;
  for (const std::unique_ptr<Work>& work : pending_) {
    status.Update(work->Wait());
  }
  pending_.clear();
  Reset();
  return status;
}

}  // namespace lockstep
