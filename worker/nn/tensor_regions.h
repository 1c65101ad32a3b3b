// TensorRegions: how the ranks of tensor parallelism share a model's layers,
// seen from the model. Between products of which each rank computes a part lies
// the residual stream, of which each rank holds its own rows: all of them, or a
// part where sequence parallelism cuts them. Where a rank's part of the layers
// begins its rows are made whole, where it ends its partial sums are added up;
// backward the other way around (Shoeybi et al., arXiv:1909.08053, section 3,
// figure 3; Korthikanti et al., arXiv:2205.05198, section 4.2.2, figure 5):
//
//                          forward       backward
//   into a split product   Whole         BeginSum
//   out of it              BeginSum      Whole
//   into what all compute  Whole         Own
//
// The model stays single-device code; this is all that it knows of ranks.
// Threads: the one that computes. All ranks call the same in the same order.
#ifndef LOCKSTEP_WORKER_NN_TENSOR_REGIONS_H_
#define LOCKSTEP_WORKER_NN_TENSOR_REGIONS_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops/cross_entropy.h"
#include "kernels/owned_tensor.h"

namespace lockstep {

struct PassContext;

// Rows are cut into `parts` equal parts, of which this rank holds number
// `index`.
struct RowPart {
  int64_t index = 0;
  int64_t parts = 1;
};

// A sum over ranks under way. Its destructor waits for it.
class PendingRows {
 public:
  // `own` is empty where the sum takes the place of `partial`.
  PendingRows(OwnedTensor partial, OwnedTensor own,
              std::function<absl::Status()> wait)
      : partial_(std::move(partial)),
        own_(std::move(own)),
        wait_(std::move(wait)) {}
  PendingRows(PendingRows&& other) noexcept
      : partial_(std::move(other.partial_)),
        own_(std::move(other.own_)),
        wait_(std::exchange(other.wait_, nullptr)) {}
  PendingRows& operator=(PendingRows&&) = delete;
  ~PendingRows() {
    if (wait_ != nullptr) wait_().IgnoreError();
  }

  // This rank's rows of the sum. Once.
  absl::StatusOr<OwnedTensor> Finish();

 private:
  OwnedTensor partial_;
  OwnedTensor own_;
  std::function<absl::Status()> wait_;
};

class TensorRegions {
 public:
  virtual ~TensorRegions() = default;

  // Of the residual stream. A batch has a multiple of `parts` rows.
  virtual RowPart row_part() const = 0;
  // Whether this rank adds what must be added once to a sum over ranks.
  virtual bool adds_bias() const = 0;

  //   own: (N / parts, C)   result: (N, C), `own` itself or in `storage`
  virtual absl::StatusOr<Tensor> Whole(const PassContext& context,
                                       const Tensor& own,
                                       OwnedTensor& storage) = 0;
  // The sum over ranks of `partial`, (N, C), of which this rank gets its rows,
  // (N / parts, C).
  virtual absl::StatusOr<PendingRows> BeginSum(const PassContext& context,
                                               OwnedTensor partial) = 0;
  // This rank's rows of `whole`, (N, C).
  Tensor Own(const Tensor& whole) const;

  // ops::CrossEntropy of logits of which this rank has columns, from id
  // `first_id` on: each rank gets the loss, and the gradient of its columns.
  virtual absl::Status CrossEntropy(const PassContext& context,
                                    const Tensor& logits, const Tensor& targets,
                                    int64_t first_id, LogitsGradient gradient,
                                    const Tensor& loss,
                                    const Tensor& correct) = 0;
  // All columns of one row of logits, (1, V) fp32, of which this rank has
  // `part`.
  virtual absl::StatusOr<OwnedTensor> WholeLogits(const PassContext& context,
                                                  OwnedTensor part,
                                                  int64_t vocabulary) = 0;
};

// One rank computes all.
class LocalRegions : public TensorRegions {
 public:
  RowPart row_part() const override { return {}; }
  bool adds_bias() const override { return true; }
  absl::StatusOr<Tensor> Whole(const PassContext& context, const Tensor& own,
                               OwnedTensor& storage) override;
  absl::StatusOr<PendingRows> BeginSum(const PassContext& context,
                                       OwnedTensor partial) override;
  absl::Status CrossEntropy(const PassContext& context, const Tensor& logits,
                            const Tensor& targets, int64_t first_id,
                            LogitsGradient gradient, const Tensor& loss,
                            const Tensor& correct) override;
  absl::StatusOr<OwnedTensor> WholeLogits(const PassContext& context,
                                          OwnedTensor part,
                                          int64_t vocabulary) override;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TENSOR_REGIONS_H_
