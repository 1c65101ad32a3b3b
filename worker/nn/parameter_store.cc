#include "worker/nn/parameter_store.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"
#include "worker/nn/initializer.h"

namespace lockstep {
namespace {

// Elements that get their initial values between two signs of life.
constexpr size_t kInitialized = size_t{4} << 20;

}  // namespace

Tensor Parameter::value() const {
  if (empty()) return Tensor();
  const Tensor& whole = store_->whole(segment_);
  CHECK(!whole.empty()) << "a parameter of unit "
                        << store_->segments()[segment_].unit
                        << " is used while it is not gathered";
  return whole.Slice(begin_, shape_.elements()).Reshaped(shape_);
}

Tensor Parameter::gradient() const {
  if (empty()) return Tensor();
  const Tensor& whole = store_->whole_gradient(segment_);
  CHECK(!whole.empty()) << "a gradient of unit "
                        << store_->segments()[segment_].unit
                        << " is used while it is not there";
  return whole.Slice(begin_, shape_.elements()).Reshaped(shape_);
}

ParameterStore::ParameterStore(std::vector<LogicalTensor> tensors,
                               DType compute_dtype, const Sharding& sharding)
    : tensors_(std::move(tensors)),
      compute_dtype_(compute_dtype),
      sharding_(sharding),
      segments_(PlanSegments(tensors_, sharding.ranks)),
      at_(segments_.size()) {
  for (size_t s = 0; s < segments_.size(); ++s) {
    const Segment& segment = segments_[s];
    CHECK(segment.unit >= units_ - 1)
        << "unit " << segment.unit << " after unit " << units_ - 1;
    units_ = segment.unit + 1;
    at_[s].shard_begin = shard_elements_;
    shard_elements_ += segment.shard_elements;
    for (int i = segment.first_tensor; i < segment.end_tensor; ++i) {
      ranges_.push_back({elements_, elements_ + tensors_[i].held_elements()});
      elements_ = ranges_.back().end;
      by_name_[tensors_[i].name] = i;
      segment_of_.push_back(static_cast<int>(s));
    }
  }
  MakePieces();
}

void ParameterStore::MakePieces() {
  for (size_t s = 0; s < segments_.size(); ++s) {
    const Segment& segment = segments_[s];
    const int64_t shard_first = sharding_.rank * segment.shard_elements;
    const int64_t segment_first = ranges_[segment.first_tensor].begin;
    for (int i = segment.first_tensor; i < segment.end_tensor; ++i) {
      // All of the segment.
      const FlatRange tensor = {ranges_[i].begin - segment_first,
                                ranges_[i].end - segment_first};
      const int64_t begin = std::max(tensor.begin, shard_first);
      const int64_t end =
          std::min(tensor.end, shard_first + segment.shard_elements);
      if (begin >= end) continue;
      pieces_.push_back({i,
                         static_cast<int>(s),
                         {begin - shard_first, end - shard_first},
                         begin - tensor.begin});
    }
  }
}

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Create(
    Stream& stream, std::vector<LogicalTensor> tensors, DType compute_dtype,
    GradientStorage gradients, const Sharding& sharding) {
  std::unique_ptr<ParameterStore> store(
      new ParameterStore(std::move(tensors), compute_dtype, sharding));
  RETURN_IF_ERROR(store->AllocateParameters(stream));
  if (gradients == GradientStorage::kAllocate) {
    RETURN_IF_ERROR(store->AllocateGradients(stream));
  }
  return store;
}

absl::StatusOr<Tensor> ParameterStore::Allocate(Stream& stream, DType dtype,
                                                int64_t elements,
                                                MemoryCategory category) {
  if (elements == 0) return Tensor();
  ASSIGN_OR_RETURN(
      OwnedTensor tensor,
      AllocateTensor(stream, dtype, {elements}, category, RowPadding::kDense));
  RETURN_IF_ERROR(ops::Zero(stream, tensor));
  memory_.push_back(std::move(tensor));
  return memory_.back().get();
}

Tensor ParameterStore::OwnPart(const Tensor& whole, int segment) const {
  const int64_t size = segments_[segment].shard_elements;
  return whole.Slice(sharding_.rank * size, size);
}

absl::Status ParameterStore::AllocateParameters(Stream& stream) {
  const bool unsharded = sharding_.ranks == 1;
  const bool keeps_whole = sharding_.stage < 3;
  const bool has_copies = compute_dtype_ != DType::kFloat32;
  // Elements of each arena; the order within is that of the segments.
  int64_t fp32_whole = 0, copy_whole = 0, fp32_shard = 0, copy_shard = 0;
  const auto copied = [&](const Segment& segment) {
    return has_copies && segment.matrices;
  };
  for (const Segment& segment : segments_) {
    const int64_t padded = segment.padded_elements(sharding_.ranks);
    if (copied(segment)) {
      fp32_shard += segment.shard_elements;
      (keeps_whole ? copy_whole : copy_shard) +=
          keeps_whole ? padded : segment.shard_elements;
    } else if (keeps_whole) {
      fp32_whole += padded;
    } else {
      fp32_shard += segment.shard_elements;
    }
  }
  if (unsharded) {
    // One arena of masters, so that buckets and views may span segments.
    fp32_whole += fp32_shard;
    fp32_shard = 0;
  }
  ASSIGN_OR_RETURN(const Tensor whole32,
                   Allocate(stream, DType::kFloat32, fp32_whole,
                            MemoryCategory::kParameter));
  ASSIGN_OR_RETURN(
      const Tensor whole_copy,
      Allocate(stream, compute_dtype_, copy_whole, MemoryCategory::kParameter));
  ASSIGN_OR_RETURN(const Tensor shard32,
                   Allocate(stream, DType::kFloat32, fp32_shard,
                            MemoryCategory::kParameter));
  ASSIGN_OR_RETURN(
      const Tensor shard_copy,
      Allocate(stream, compute_dtype_, copy_shard, MemoryCategory::kParameter));
  if (unsharded) master_ = whole32;

  int64_t next_whole32 = 0, next_whole_copy = 0, next_shard32 = 0,
          next_shard_copy = 0;
  const auto take = [](const Tensor& arena, int64_t& next, int64_t elements) {
    next += elements;
    return arena.Slice(next - elements, elements);
  };
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    const int s = static_cast<int>(i);
    SegmentMemory& memory = at_[i];
    const int64_t padded = segment.padded_elements(sharding_.ranks);
    if (unsharded) {
      memory.master = take(whole32, next_whole32, padded);
      if (copied(segment)) {
        memory.whole = take(whole_copy, next_whole_copy, padded);
        memory.compute_copy = memory.whole;
      } else {
        memory.whole = memory.master;
      }
    } else if (copied(segment)) {
      memory.master = take(shard32, next_shard32, segment.shard_elements);
      if (keeps_whole) {
        memory.whole = take(whole_copy, next_whole_copy, padded);
        memory.compute_copy = OwnPart(memory.whole, s);
      } else {
        memory.compute_copy =
            take(shard_copy, next_shard_copy, segment.shard_elements);
      }
    } else if (keeps_whole) {
      memory.whole = take(whole32, next_whole32, padded);
      memory.master = OwnPart(memory.whole, s);
    } else {
      memory.master = take(shard32, next_shard32, segment.shard_elements);
    }
  }
  return absl::OkStatus();
}

absl::Status ParameterStore::AllocateGradients(Stream& stream) {
  const bool whole = sharding_.stage < 2;
  int64_t elements = 0;
  for (const Segment& segment : segments_) {
    elements += whole ? segment.padded_elements(sharding_.ranks)
                      : segment.shard_elements;
  }
  ASSIGN_OR_RETURN(gradient_, Allocate(stream, DType::kFloat32, elements,
                                       MemoryCategory::kGradient));
  int64_t next = 0;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const int64_t size = whole ? segments_[s].padded_elements(sharding_.ranks)
                               : segments_[s].shard_elements;
    const Tensor part = gradient_.Slice(next, size);
    if (whole) at_[s].whole_gradient = part;
    at_[s].gradient = whole ? OwnPart(part, static_cast<int>(s)) : part;
    next += size;
  }
  return absl::OkStatus();
}

bool ParameterStore::Contains(std::string_view name) const {
  return by_name_.contains(std::string(name));
}

Parameter ParameterStore::Get(std::string_view name) const {
  return Stacked({std::string(name)});
}

Parameter ParameterStore::Stacked(const std::vector<std::string>& names) const {
  int64_t begin = 0, end = 0, rows = 0, cols = 0;
  int segment = 0;
  bool matrix = false;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto it = by_name_.find(names[i]);
    CHECK(it != by_name_.end()) << "no parameter " << names[i];
    const LogicalTensor& tensor = tensors_[it->second];
    const FlatRange range = ranges_[it->second];
    if (i == 0) {
      segment = segment_of_[it->second];
      begin = end = range.begin;
      matrix = tensor.held_shape.size() == 2;
      cols = tensor.held_shape.back();
    }
    CHECK(range.begin == end && segment_of_[it->second] == segment)
        << names[i] << " is not adjacent";
    CHECK((tensor.held_shape.size() == 2) == matrix &&
          (!matrix || tensor.held_shape.back() == cols))
        << names[i] << " can't be stacked";
    rows += tensor.held_shape.front();
    end = range.end;
  }
  const int64_t segment_begin = ranges_[segments_[segment].first_tensor].begin;
  return Parameter(this, segment, begin - segment_begin,
                   matrix ? Shape{rows, cols} : Shape{rows});
}

const Tensor& ParameterStore::to_gather(int segment) const {
  const SegmentMemory& memory = at_[segment];
  return memory.compute_copy.empty() ? memory.master : memory.compute_copy;
}

void ParameterStore::LendParameters(int segment, const Tensor& whole) {
  CHECK(sharding_.stage == 3) << "parameters are kept";
  at_[segment].whole = whole;
}

void ParameterStore::LendGradients(int segment, const Tensor& whole_gradient) {
  CHECK(sharding_.stage >= 2) << "gradients are kept";
  at_[segment].whole_gradient = whole_gradient;
}

const Tensor& ParameterStore::master() const {
  CHECK(sharding_.ranks == 1) << "a sharded store has no whole masters";
  return master_;
}

const Tensor& ParameterStore::gradient() const {
  CHECK(sharding_.ranks == 1) << "a sharded store has no whole gradients";
  return gradient_;
}

void ParameterStore::Initialize(uint64_t seed,
                                const std::function<void()>& alive) {
  for (const ShardPiece& piece : pieces_) {
    const auto values =
        absl::MakeSpan(master(piece.segment).data<float>() + piece.range.begin,
                       static_cast<size_t>(piece.range.size()));
    for (size_t offset = 0; offset < values.size(); offset += kInitialized) {
      if (alive) alive();
      const auto block = values.subspan(offset, kInitialized);
      const int64_t first = piece.tensor_offset + static_cast<int64_t>(offset);
      const LogicalTensor& tensor = tensors_[piece.tensor];
      ForEachRun(tensor, first, static_cast<int64_t>(block.size()),
                 [&](int64_t whole, int64_t held, int64_t elements) {
                   InitializeValues(tensor, seed, whole,
                                    block.subspan(held - first, elements));
                 });
    }
  }
}

absl::Status ParameterStore::RefreshCompute(Stream& stream) {
  for (const SegmentMemory& memory : at_) {
    if (memory.compute_copy.empty()) continue;
    RETURN_IF_ERROR(ops::Convert(stream, memory.master, memory.compute_copy));
  }
  return absl::OkStatus();
}

absl::Status ParameterStore::ZeroGradients(Stream& stream) {
  return ops::Zero(stream, gradient_);
}

}  // namespace lockstep
