#include "worker/parallel/data/ddp.h"

namespace lockstep {

Ddp::Ddp(ProcessGroup& group, const ParameterStore& store, int64_t bucket_bytes)
    : group_(group),
      store_(store),
      buckets_(PlanBuckets(store, bucket_bytes)) {}

void Ddp::BeginMicroBatch(Turn turn) { turn_ = turn; }

absl::Status Ddp::AfterBackward(int unit) {
  if (turn_ == Turn::kLast) FlushDownTo(unit);
  return absl::OkStatus();
}

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

absl::Status Ddp::Finish() {
  FlushDownTo(0);
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
