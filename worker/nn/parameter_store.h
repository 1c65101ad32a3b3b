// ParameterStore: a rank's parameters and gradients.
//
// Parameters lie flat, in the order of the model's logical tensors, so that a
// bucket or a shard is a view; tensors that are multiplied as one matrix (q, k
// and v; gate and up) are adjacent, so that matrix is a view too. They are cut
// into segments (common/model/segment.h). A rank keeps, by `Sharding`:
//
//   stage  states  gradients  parameters      (Rajbhandari et al.,
//     0    whole   whole      whole            arXiv:1910.02054, section 5)
//     1    shard   whole      whole
//     2    shard   shard      whole
//     3    shard   shard      shard
//
// "Whole" is what modules compute with: fp32, or in bf16 jobs bf16 for matrices
// and fp32 for vectors. Where it isn't kept, it is lent for a while
// (LendParameters, LendGradients). fp32 masters of bf16 values count as states.
//
// Owns its memory (categories parameter and gradient). Threads: one at a time.
#ifndef LOCKSTEP_WORKER_NN_PARAMETER_STORE_H_
#define LOCKSTEP_WORKER_NN_PARAMETER_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/logical_tensor.h"
#include "common/model/segment.h"
#include "kernels/owned_tensor.h"
#include "kernels/stream.h"

namespace lockstep {

class ParameterStore;

// One parameter, or several adjacent ones seen as one: where it is, looked up
// anew at each use, as a sharded parameter's memory comes and goes.
class Parameter {
 public:
  Parameter() = default;

  bool empty() const { return store_ == nullptr; }
  const Shape& shape() const { return shape_; }
  // What modules compute with; empty tensor for an empty parameter. CHECK-fails
  // while the segment is not there.
  Tensor value() const;
  // fp32, summed over micro-batches; as above.
  Tensor gradient() const;

 private:
  friend class ParameterStore;
  Parameter(const ParameterStore* store, int segment, int64_t begin,
            Shape shape)
      : store_(store), segment_(segment), begin_(begin), shape_(shape) {}

  const ParameterStore* store_ = nullptr;
  int segment_ = 0;
  // Within the segment.
  int64_t begin_ = 0;
  Shape shape_;
};

// Elements [begin, end) of a flat range.
struct FlatRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

enum class GradientStorage { kAllocate, kNone };

// The ranks that share one replica's states, and what they share.
struct Sharding {
  int ranks = 1;
  int rank = 0;
  // 0 where there is one rank.
  int stage = 0;
};

// The part of a logical tensor that lies in this rank's shard of a segment.
struct ShardPiece {
  int tensor = 0;
  int segment = 0;
  // Within the shard.
  FlatRange range;
  // Of the first element, within what this rank holds of the logical tensor.
  int64_t tensor_offset = 0;
};

class ParameterStore {
 public:
  // Uninitialised. RESOURCE_EXHAUSTED if the device's limit is passed.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Create(
      Stream& stream, std::vector<LogicalTensor> tensors, DType compute_dtype,
      GradientStorage gradients, const Sharding& sharding = {});

  const std::vector<LogicalTensor>& tensors() const { return tensors_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const Sharding& sharding() const { return sharding_; }
  // One more than the last unit that it holds something of.
  int units() const { return units_; }
  // Of what this rank's replica part holds, and of this rank's shards, padding
  // included.
  int64_t elements() const { return elements_; }
  int64_t shard_elements() const { return shard_elements_; }

  // The parameter called `name`; CHECK-fails if there is none.
  Parameter Get(std::string_view name) const;
  bool Contains(std::string_view name) const;
  // Adjacent matrices of equal width stacked to one, or adjacent vectors
  // joined; CHECK-fails if they are not adjacent in that order.
  Parameter Stacked(const std::vector<std::string>& names) const;

  // This rank's shard of a segment, flat: (shard_elements,). fp32 master values
  // that the optimizer updates; their copies in the compute dtype, empty where
  // that is the master itself; fp32 gradients.
  const Tensor& master(int segment) const { return at_[segment].master; }
  const Tensor& compute_copy(int segment) const {
    return at_[segment].compute_copy;
  }
  const Tensor& gradient(int segment) const { return at_[segment].gradient; }
  // Where the segment's shard lies among all shards, one after another.
  int64_t shard_begin(int segment) const { return at_[segment].shard_begin; }
  // What is gathered: the compute copy, or the master where there is none.
  const Tensor& to_gather(int segment) const;

  // The whole segment with its padding; empty while it is not there.
  const Tensor& whole(int segment) const { return at_[segment].whole; }
  const Tensor& whole_gradient(int segment) const {
    return at_[segment].whole_gradient;
  }
  DType whole_dtype(int segment) const {
    return segments_[segment].matrices ? compute_dtype_ : DType::kFloat32;
  }
  // Sets them where they aren't kept; an empty tensor takes them away.
  void LendParameters(int segment, const Tensor& whole);
  void LendGradients(int segment, const Tensor& whole_gradient);

  // What this rank's shards hold of each logical tensor, in shard order.
  const std::vector<ShardPiece>& pieces() const { return pieces_; }

  // Whole flat arenas of an unsharded store, in the order of the tensors;
  // CHECK-fails otherwise. range(i) is where tensors()[i] lies in them.
  const Tensor& master() const;
  const Tensor& gradient() const;
  FlatRange range(int i) const { return ranges_[i]; }

  // Sets initial values: a pure function of (seed, name, element). `alive` is
  // called every second or so; it may be empty.
  void Initialize(uint64_t seed, const std::function<void()>& alive = {});
  // Brings the copies of this rank's shards up to date with the master values.
  absl::Status RefreshCompute(Stream& stream);
  // Sets all gradients that are kept to zero.
  absl::Status ZeroGradients(Stream& stream);

 private:
  friend class Parameter;
  struct SegmentMemory {
    Tensor whole;
    Tensor whole_gradient;
    Tensor master;
    Tensor compute_copy;
    Tensor gradient;
    int64_t shard_begin = 0;
  };

  ParameterStore(std::vector<LogicalTensor> tensors, DType compute_dtype,
                 const Sharding& sharding);
  absl::Status AllocateParameters(Stream& stream);
  absl::Status AllocateGradients(Stream& stream);
  absl::StatusOr<Tensor> Allocate(Stream& stream, DType dtype, int64_t elements,
                                  MemoryCategory category);
  Tensor OwnPart(const Tensor& whole, int segment) const;
  void MakePieces();

  const std::vector<LogicalTensor> tensors_;
  const DType compute_dtype_;
  const Sharding sharding_;
  const std::vector<Segment> segments_;
  std::vector<FlatRange> ranges_;
  std::unordered_map<std::string, int> by_name_;
  std::vector<int> segment_of_;
  int units_ = 0;
  int64_t elements_ = 0;
  int64_t shard_elements_ = 0;
  std::vector<SegmentMemory> at_;
  std::vector<ShardPiece> pieces_;
  std::vector<OwnedTensor> memory_;
  // Of an unsharded store.
  Tensor master_;
  // All gradients that are kept.
  Tensor gradient_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_PARAMETER_STORE_H_
