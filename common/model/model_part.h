// ModelPart: what one rank holds and computes of a model that tensor parallelism
// cuts across its layers: a contiguous share of the heads, of the feed-forward
// width and of the vocabulary (Shoeybi et al., arXiv:1909.08053, section 3).
// Shares differ by at most one where they don't divide evenly. Query heads go
// with the key head that they share. Pure.
#ifndef LOCKSTEP_COMMON_MODEL_MODEL_PART_H_
#define LOCKSTEP_COMMON_MODEL_MODEL_PART_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/model/logical_tensor.h"
#include "common/spec/model_spec.h"

namespace lockstep {

// Portion `index` of `count` of `extent` things: [begin, end).
struct Portion {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
Portion PortionOf(int64_t extent, int64_t index, int64_t count);

// This rank among those that cut a model.
struct TensorPlace {
  int rank = 0;
  int ranks = 1;
  // Whether what lies between the cut products is cut along the sequence
  // (Korthikanti et al., arXiv:2205.05198, section 4.2.2), so that gradients of
  // norms are sums over the ranks.
  bool sequence_parallel = false;
};

struct ModelPart {
  ModelSpec whole;
  // With the heads, key heads, feed-forward width and vocabulary of this rank.
  ModelSpec local;
  TensorPlace place;
  // First of each, among the whole model's.
  int64_t first_head = 0;
  int64_t first_kv_head = 0;
  int64_t first_hidden = 0;
  int64_t first_id = 0;
};

// INVALID_ARGUMENT, naming key, got and wanted, if a model can't be cut into
// `ranks` parts.
absl::Status CheckTensorParallel(const ModelSpec& model, int64_t ranks);

// Of a model that CheckTensorParallel has passed.
ModelPart PartOf(const ModelSpec& model, const TensorPlace& place = {});

// The logical tensors of DescribeModel, with what this rank holds of each. In a
// block's vectors, those whose gradients are sums over the ranks come first.
std::vector<LogicalTensor> DescribePart(const ModelPart& part);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_MODEL_PART_H_
