#include "worker/parallel/data/zero.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {

Zero::Zero(ProcessGroup& shards, ProcessGroup& replicas, Stream& stream,
           ParameterStore& store, const ModelVisits& visits)
    : shards_(shards),
      replicas_(replicas),
      stream_(stream),
      store_(store),
      stage_(store.sharding().stage),
      visits_(visits),
      uses_(store.units()),
      gathered_(store.segments().size()),
      gradients_(store.segments().size()),
      begun_(store.segments().size(), false) {
  for (size_t s = 0; s < store.segments().size(); ++s) {
    const Segment& segment = store.segments()[s];
    if (segment.elements == 0) continue;
    uses_[segment.unit].push_back(static_cast<int>(s));
    // The head multiplies by the token embedding.
    if (segment.unit == 0 && visits.tied_embeddings) {
      uses_.back().push_back(static_cast<int>(s));
    }
  }
}

Zero::~Zero() {
  for (size_t s = 0; s < gathered_.size(); ++s) Free(static_cast<int>(s));
  for (size_t s = 0; s < gradients_.size(); ++s) {
    if (!gradients_[s].empty()) {
      store_.LendGradients(static_cast<int>(s), Tensor());
    }
  }
}

void Zero::BeginMicroBatch(Turn turn) { turn_ = turn; }

int Zero::Next(int unit, Pass pass) const {
  if (pass != Pass::kForward) return unit - 1;
  const int last = store_.units() - (visits_.head_follows_forward ? 1 : 2);
  return unit < last ? unit + 1 : -1;
}

bool Zero::MakesGradient(int segment, Pass pass) const {
  switch (pass) {
    case Pass::kForward:
      return false;
    case Pass::kBackward:
      return true;
    case Pass::kBackwardInput:
      return !store_.segments()[segment].matrices;
    case Pass::kBackwardWeights:
      return store_.segments()[segment].matrices;
  }
  return false;
}

absl::Status Zero::Gather(int segment) {
  Gathered& gathered = gathered_[segment];
  if (!gathered.memory.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      gathered.memory,
      AllocateTensor(
          stream_, store_.whole_dtype(segment),
          {store_.segments()[segment].padded_elements(shards_.size())},
          MemoryCategory::kBuffer, RowPadding::kDense));
  gathered.work = shards_.AllGather(store_.to_gather(segment), gathered.memory);
  return absl::OkStatus();
}

absl::Status Zero::AwaitParameters(int segment) {
  Gathered& gathered = gathered_[segment];
  if (gathered.work == nullptr) return absl::OkStatus();
  const std::unique_ptr<Work> work = std::move(gathered.work);
  RETURN_IF_ERROR(work->Wait());
  if (stage_ == 3) store_.LendParameters(segment, gathered.memory);
  return absl::OkStatus();
}

void Zero::Free(int segment) {
  Gathered& gathered = gathered_[segment];
  if (gathered.memory.empty()) return;
  store_.LendParameters(segment, Tensor());
  gathered.memory.Reset();
}

absl::Status Zero::PrepareGradients(int segment) {
  if (stage_ < 2 || !gradients_[segment].empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      gradients_[segment],
      AllocateTensor(
          stream_, DType::kFloat32,
          {store_.segments()[segment].padded_elements(shards_.size())},
          MemoryCategory::kBuffer, RowPadding::kDense));
  RETURN_IF_ERROR(ops::Zero(stream_, gradients_[segment]));
  store_.LendGradients(segment, gradients_[segment]);
  return absl::OkStatus();
}

absl::Status Zero::BeforeUnit(int unit, Pass pass) {
  // Gradients of matrices take activations alone.
  if (pass != Pass::kBackwardWeights) {
    if (stage_ == 3) {
      // The first visit of a pass finds nothing that was gathered ahead.
      for (const int segment : Uses(unit)) RETURN_IF_ERROR(Gather(segment));
    }
    for (const int segment : Uses(unit)) {
      RETURN_IF_ERROR(AwaitParameters(segment));
    }
    const int next = Next(unit, pass);
    if (stage_ == 3 && next >= 0) {
      for (const int segment : Uses(next)) RETURN_IF_ERROR(Gather(segment));
    }
  }
  // Gradients of another pass, or of another stage, go before new ones come.
  const bool follows =
      !reductions_.empty() && pass != Pass::kForward &&
      store_.segments()[reductions_.back().segment].unit == unit + 1;
  if (!follows) RETURN_IF_ERROR(Drain());
  for (const int segment : Uses(unit)) {
    if (MakesGradient(segment, pass)) {
      RETURN_IF_ERROR(PrepareGradients(segment));
    }
  }
  return absl::OkStatus();
}

bool Zero::CompleteAfter(int segment, int unit) const {
  return store_.segments()[segment].unit == unit;
}

absl::Status Zero::AfterUnit(int unit, Pass pass) {
  if (stage_ == 3 && pass != Pass::kBackwardWeights) {
    const int next = Next(unit, pass);
    for (const int segment : Uses(unit)) {
      const bool stays =
          next >= 0 && std::find(Uses(next).begin(), Uses(next).end(),
                                 segment) != Uses(next).end();
      if (!stays) Free(segment);
    }
  }
  if (pass == Pass::kForward) return absl::OkStatus();
  // What the unit before this one began is over by now, most likely.
  RETURN_IF_ERROR(Drain());
  for (const int segment : Uses(unit)) {
    if (!MakesGradient(segment, pass)) continue;
    const bool last = turn_ == Turn::kLast && CompleteAfter(segment, unit);
    if (stage_ == 1 && !last) continue;
    RETURN_IF_ERROR(Reduce(segment, last));
  }
  return absl::OkStatus();
}

absl::Status Zero::Reduce(int segment, bool last) {
  Reduction reduction;
  reduction.segment = segment;
  reduction.last = last;
  Tensor to = store_.gradient(segment);
  if (stage_ >= 2) {
    store_.LendGradients(segment, Tensor());
    reduction.whole = std::move(gradients_[segment]);
    if (begun_[segment]) {
      ASSIGN_OR_RETURN(
          reduction.part,
          AllocateTensor(stream_, DType::kFloat32,
                         {store_.segments()[segment].shard_elements},
                         MemoryCategory::kBuffer, RowPadding::kDense));
      to = reduction.part;
    }
    begun_[segment] = true;
  }
  const Tensor& from =
      stage_ >= 2 ? reduction.whole.get() : store_.whole_gradient(segment);
  reduction.work = shards_.ReduceScatter(from, to, ReduceOp::kSum);
  reductions_.push_back(std::move(reduction));
  return absl::OkStatus();
}

absl::Status Zero::Drain() {
  for (Reduction& reduction : reductions_) {
    RETURN_IF_ERROR(reduction.work->Wait());
    const Tensor& shard = store_.gradient(reduction.segment);
    if (!reduction.part.empty()) {
      RETURN_IF_ERROR(ops::Add(stream_, shard, reduction.part, shard));
    }
    if (reduction.last && replicas_.size() > 1) {
      sums_.push_back(replicas_.AllReduce(shard, ReduceOp::kSum));
    }
  }
  reductions_.clear();
  return absl::OkStatus();
}

absl::Status Zero::FinishGradients() {
  RETURN_IF_ERROR(Drain());
  for (const std::unique_ptr<Work>& work : sums_) {
    RETURN_IF_ERROR(work->Wait());
  }
  sums_.clear();
  std::fill(begun_.begin(), begun_.end(), false);
  turn_ = Turn::kAccumulate;
  return absl::OkStatus();
}

absl::Status Zero::PublishParameters() {
  if (stage_ == 3) return absl::OkStatus();
  for (size_t i = 0; i < store_.segments().size(); ++i) {
    const int segment = static_cast<int>(i);
    if (store_.segments()[i].elements == 0) continue;
    RETURN_IF_ERROR(AwaitParameters(segment));
    gathered_[i].work =
        shards_.AllGather(store_.to_gather(segment), store_.whole(segment));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
