// ModelPart: what one rank holds and computes of a model. Pipeline parallelism
// gives it some units; tensor parallelism cuts across them: a contiguous share
// of the heads, of the feed-forward width and of the vocabulary (Shoeybi et
// al., arXiv:1909.08053, section 3). Shares differ by at most one where they
// don't divide evenly. Query heads go with the key head that they share. Pure.
#ifndef LOCKSTEP_COMMON_MODEL_MODEL_PART_H_
#define LOCKSTEP_COMMON_MODEL_MODEL_PART_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/model/logical_tensor.h"
#include "common/model/portion.h"
#include "common/spec/model_spec.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

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
  // Its units: a range for each virtual stage, in order. Default: all.
  std::vector<Portion> chunks;

  bool Holds(int64_t unit) const;
  bool tied() const {
    return whole.task == v1::TASK_LANGUAGE_MODEL && whole.tied_embeddings;
  }
};

// INVALID_ARGUMENT, naming key, got and wanted, if a model can't be cut into
// `ranks` parts.
absl::Status CheckTensorParallel(const ModelSpec& model, int64_t ranks);

// The same of context parallelism, of a layout of which it has passed the rest.
absl::Status CheckContextParallel(const ModelSpec& model,
                                  const v1::Layout& layout);

// Of a model that CheckTensorParallel has passed. `chunks`: none is all units.
ModelPart PartOf(const ModelSpec& model, const TensorPlace& place = {},
                 std::vector<Portion> chunks = {});

// Those of DescribeModel's logical tensors that this rank has part in, with
// what it holds of each. In a block's vectors, those whose gradients are sums
// over the ranks come first. Where the head's stage doesn't have the embedding
// that it is tied to, the head's unit has a copy of it.
std::vector<LogicalTensor> DescribePart(const ModelPart& part);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_MODEL_PART_H_
