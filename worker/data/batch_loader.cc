#include "worker/data/batch_loader.h"

#include <algorithm>
#include <utility>

#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

// Micro-batches of the largest share of `samples`.
int64_t MostMicroBatches(int64_t samples, int64_t shares, int64_t micro_batch) {
  const int64_t largest = (samples + shares - 1) / shares;
  return (largest + micro_batch - 1) / micro_batch;
}

absl::Status Validate(const BatchLoader::Options& options) {
  if (options.global_batch < 1 || options.micro_batch < 1 ||
      options.first_position < 0 || options.share.count < 1 ||
      options.share.index < 0 || options.share.index >= options.share.count) {
    return absl::InvalidArgumentError(StrCat(
        "batch loader: global batch ", options.global_batch, ", micro-batch ",
        options.micro_batch, ", first position ", options.first_position,
        ", share ", options.share.index, " of ", options.share.count));
  }
  return absl::OkStatus();
}

}  // namespace

BatchLoader::BatchLoader(const Dataset& dataset, SampleOrder order,
                         Options options)
    : dataset_(dataset),
      order_(order),
      options_(options),
      next_position_(options.first_position) {
  if (Validate(options_).ok()) thread_ = std::thread([this] { Run(); });
}

BatchLoader::~BatchLoader() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<StepBatch> BatchLoader::Next() {
  if (absl::Status status = Validate(options_); !status.ok()) return status;
  if (options_.total_positions.has_value() &&
      next_position_ >= *options_.total_positions) {
    return absl::OutOfRangeError(
        StrCat("batch loader: position ", next_position_, " is the end of the ",
               *options_.total_positions, " positions of the run"));
  }
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](std::optional<StepBatch>* ready) { return ready->has_value(); },
      &ready_));
  StepBatch batch = *std::move(ready_);
  ready_.reset();
  next_position_ += batch.samples;
  return batch;
}

void BatchLoader::Run() {
  int64_t first = options_.first_position;
  while (true) {
    int64_t last = first + options_.global_batch;
    if (options_.total_positions.has_value()) {
      last = std::min(last, *options_.total_positions);
      if (first >= last) return;
    }
    StepBatch batch = Make(first, last);
    first = last;
    absl::MutexLock lock(&mutex_);
    const auto free_or_stopping = [this]()
                                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                        return stopping_ || !ready_.has_value();
                                      };
    mutex_.Await(absl::Condition(&free_or_stopping));
    if (stopping_) return;
    ready_ = std::move(batch);
  }
}

StepBatch BatchLoader::Make(int64_t first, int64_t last) const {
  StepBatch step;
  step.first_position = first;
  step.samples = last - first;
  const BatchShare share =
      ShareOf(last - first, options_.share.index, options_.share.count);
  for (int64_t i = 0; i < last - first; ++i) {
    const int64_t position = first + i;
    const int64_t sample = order_.At(position);
    step.valid_targets += dataset_.ValidTargets(sample);
    if (i < share.first || i >= share.last) continue;
    if ((i - share.first) % options_.micro_batch == 0) {
      step.micro_batches.emplace_back();
    }
    dataset_.Append(sample, position, step.micro_batches.back());
  }
  step.most_micro_batches = MostMicroBatches(last - first, options_.share.count,
                                             options_.micro_batch);
  for (const MicroBatch& micro_batch : step.micro_batches) {
    step.rows += micro_batch.rows();
  }
  return step;
}

ValidationBatches::ValidationBatches(const Dataset& dataset, DataShare share,
                                     int64_t micro_batch)
    : dataset_(dataset),
      shares_(share.count),
      micro_batch_(std::max<int64_t>(micro_batch, 1)),
      part_(ShareOf(dataset.samples(), share.index, share.count)),
      next_(part_.first) {}

int64_t ValidationBatches::count() const {
  return (part_.last - part_.first + micro_batch_ - 1) / micro_batch_;
}

int64_t ValidationBatches::most_count() const {
  return MostMicroBatches(dataset_.samples(), shares_, micro_batch_);
}

const MicroBatch* ValidationBatches::Next() {
  if (next_ >= part_.last) return nullptr;
  batch_.Clear();
  for (int64_t i = 0; i < micro_batch_ && next_ < part_.last; ++i, ++next_) {
    dataset_.Append(next_, next_, batch_);
  }
  return &batch_;
}

}  // namespace lockstep
