// ParameterStore: a rank's parameters and gradients, in one flat arena each, in
// the order of the model's logical tensors. Units are contiguous ranges, so a
// bucket or a shard is a view; tensors that are multiplied as one matrix (q, k
// and v; gate and up) are adjacent, so that matrix is a view too.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/logical_tensor.h"
#include "kernels/owned_tensor.h"
#include "kernels/stream.h"

namespace lockstep {

// One parameter, or several adjacent ones seen as one.
struct Parameter {
  // fp32 value that the optimizer updates; vectors are used as they are.
  Tensor master;
  // What matrix products read: `master` itself in fp32, else its bf16 copy.
  Tensor compute;
  // fp32, summed over micro-batches. Empty in a store without gradients.
  Tensor gradient;
  bool empty() const { return master.empty(); }
};

// Elements [begin, end) of the flat arenas.
struct FlatRange {
  int64_t begin = 0;
  int64_t end = 0;
};

enum class GradientStorage { kAllocate, kNone };

class ParameterStore {
 public:
  // Uninitialised. RESOURCE_EXHAUSTED if the device's limit is passed.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Create(
      Stream& stream, std::vector<LogicalTensor> tensors, DType compute_dtype,
      GradientStorage gradients);

  const std::vector<LogicalTensor>& tensors() const { return tensors_; }
  // Of tensors()[i].
  FlatRange range(int i) const { return ranges_[i]; }
  int units() const { return static_cast<int>(unit_ranges_.size()); }
  FlatRange unit_range(int unit) const { return unit_ranges_[unit]; }
  int64_t elements() const { return elements_; }

  // The parameter called `name`; CHECK-fails if there is none.
  Parameter Get(std::string_view name) const;
  bool Contains(std::string_view name) const;
  // Adjacent matrices of equal width stacked to one, or adjacent vectors
  // joined; CHECK-fails if they are not adjacent in that order.
  Parameter Stacked(const std::vector<std::string>& names) const;

  // Whole arenas, flat. compute() is master() in fp32.
  const Tensor& master() const { return master_.get(); }
  const Tensor& compute() const {
    return compute_.empty() ? master_.get() : compute_.get();
  }
  const Tensor& gradient() const { return gradient_.get(); }
  // bf16 copies exist.
  bool has_compute_copy() const { return !compute_.empty(); }

  // Sets initial values: a pure function of (seed, name, element). `alive` is
  // called every second or so; it may be empty.
  void Initialize(uint64_t seed, const std::function<void()>& alive = {});
  // Brings the bf16 copies up to date with the master values.
  absl::Status RefreshCompute(Stream& stream);

 private:
  ParameterStore() = default;
  Parameter View(int64_t begin, Shape shape) const;

  std::vector<LogicalTensor> tensors_;
  std::vector<FlatRange> ranges_;
  std::vector<FlatRange> unit_ranges_;
  std::unordered_map<std::string, int> by_name_;
  int64_t elements_ = 0;
  OwnedTensor master_;
  OwnedTensor compute_;
  OwnedTensor gradient_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_PARAMETER_STORE_H_
