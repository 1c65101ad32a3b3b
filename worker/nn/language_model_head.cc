#include "worker/nn/language_model_head.h"

#include <algorithm>
#include <utility>

#include "common/model/logit_rows.h"
#include "common/status_macros.h"
#include "worker/nn/loss.h"
#include "worker/nn/transformer_block.h"

namespace lockstep {
namespace {

absl::StatusOr<OwnedTensor> LogitsBuffer(const PassContext& context,
                                         int64_t rows, int64_t vocabulary) {
  return AllocateTensor(context.stream, DType::kFloat32, {rows, vocabulary},
                        MemoryCategory::kActivation, RowPadding::kPadded);
}

}  // namespace

LanguageModelHead::LanguageModelHead(const ModelPart& part,
                                     const ParameterStore& store)
    : first_id_(part.first_id),
      vocabulary_(part.whole.vocabulary),
      largest_share_((part.whole.vocabulary + part.place.ranks - 1) /
                     part.place.ranks),
      norm_(MakeNorm(part.local, store, "final_norm")),
      output_(store.Get(part.local.tied_embeddings ? "embedding.tokens.weight"
                                                   : "head.weight"),
              Parameter()) {}

absl::StatusOr<OwnedTensor> LanguageModelHead::ForwardBackward(
    const PassContext& context, Residual input, LossSums& sums) const {
  const int64_t own_rows = input.sum.rows(), cols = input.sum.cols();
  NormActivations normed;
  RETURN_IF_ERROR(norm_.Forward(context, std::move(input), normed));
  OwnedTensor partial;
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(const Tensor x,
                     context.regions.Whole(context, normed.normed, storage));
    const int64_t rows = x.rows();
    ASSIGN_OR_RETURN(partial, context.Activation(rows, cols));
    const int64_t step = std::min(rows, LogitRows(largest_share_));
    ASSIGN_OR_RETURN(OwnedTensor buffer,
                     LogitsBuffer(context, step, output_.out_width()));
    for (int64_t begin = 0; begin < rows; begin += step) {
      const int64_t count = std::min(step, rows - begin);
      RETURN_IF_ERROR(ForwardBackwardRows(
          context, x.Rows(begin, count),
          context.batch.targets.Slice(begin, count), buffer->Rows(0, count),
          partial->Rows(begin, count), sums));
    }
  }
  normed.normed.Reset();
  ASSIGN_OR_RETURN(PendingRows sum,
                   context.regions.BeginSum(context, std::move(partial)));
  ASSIGN_OR_RETURN(const OwnedTensor dnormed, sum.Finish());
  ASSIGN_OR_RETURN(OwnedTensor dsum, context.Activation(own_rows, cols));
  RETURN_IF_ERROR(norm_.BackwardFirst(context, normed, dnormed, dsum));
  return dsum;
}

absl::Status LanguageModelHead::ForwardBackwardRows(
    const PassContext& context, const Tensor& x, const Tensor& targets,
    const Tensor& logits, const Tensor& dx, LossSums& sums) const {
  RETURN_IF_ERROR(output_.Forward(context, x, logits));
  RETURN_IF_ERROR(AddLoss(context, logits, targets, first_id_,
                          LogitsGradient::kInPlace, sums));
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor dlogits,
                   AsComputeType(context, logits, storage));
  RETURN_IF_ERROR(output_.BackwardWeights(context, x, dlogits));
  return output_.BackwardInput(context, dlogits, dx);
}

absl::Status LanguageModelHead::Evaluate(const PassContext& context,
                                         Residual input, LossSums& sums) const {
  NormActivations normed;
  RETURN_IF_ERROR(norm_.Forward(context, std::move(input), normed));
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor x,
                   context.regions.Whole(context, normed.normed, storage));
  const int64_t rows = x.rows();
  const int64_t step = std::min(rows, LogitRows(largest_share_));
  ASSIGN_OR_RETURN(OwnedTensor buffer,
                   LogitsBuffer(context, step, output_.out_width()));
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t count = std::min(step, rows - begin);
    const Tensor logits = buffer->Rows(0, count);
    RETURN_IF_ERROR(output_.Forward(context, x.Rows(begin, count), logits));
    RETURN_IF_ERROR(AddLoss(context, logits,
                            context.batch.targets.Slice(begin, count),
                            first_id_, LogitsGradient::kNone, sums));
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnedTensor> LanguageModelHead::Logits(
    const PassContext& context, Residual input) const {
  NormActivations normed;
  RETURN_IF_ERROR(norm_.Forward(context, std::move(input), normed));
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor x,
                   context.regions.Whole(context, normed.normed, storage));
  ASSIGN_OR_RETURN(OwnedTensor logits,
                   LogitsBuffer(context, 1, output_.out_width()));
  RETURN_IF_ERROR(
      output_.Forward(context, x.Rows(context.batch.last_row, 1), logits));
  return context.regions.WholeLogits(context, std::move(logits), vocabulary_);
}

}  // namespace lockstep
