#include "worker/nn/embedding.h"

#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/embedding.h"

namespace lockstep {
namespace {

constexpr char kPositions[] = "embedding.positions.weight";

}  // namespace

Embedding::Embedding(const ModelPart& part, const ParameterStore& store)
    : width_(part.local.width),
      first_id_(part.first_id),
      tokens_(store.Get("embedding.tokens.weight")),
      positions_(store.Contains(kPositions) ? store.Get(kPositions)
                                            : Parameter()) {}

absl::StatusOr<Residual> Embedding::Forward(const PassContext& context,
                                            OwnedTensor& saved) const {
  TensorRegions& regions = context.regions;
  ASSIGN_OR_RETURN(OwnedTensor looked_up,
                   context.Activation(context.batch.rows, width_));
  RETURN_IF_ERROR(ops::EmbeddingForward(
      context.stream, context.batch.tokens, first_id_, context.batch.positions,
      tokens_.value(), regions.adds_bias() ? positions_.value() : Tensor(),
      Dropout(), looked_up));
  ASSIGN_OR_RETURN(PendingRows sum,
                   regions.BeginSum(context, std::move(looked_up)));
  ASSIGN_OR_RETURN(saved, sum.Finish());
  if (context.dropout > 0.0f) {
    RETURN_IF_ERROR(ops::Dropout(
        context.stream, saved,
        context.ResidualDropoutAt(SiteOf(0, DropoutSite::kEmbedding)), 0,
        saved));
  }
  Residual residual;
  residual.sum = saved;
  return residual;
}

absl::Status Embedding::Backward(const PassContext& context,
                                 const Tensor& dsum) const {
  OwnedTensor dropped, storage;
  ASSIGN_OR_RETURN(const Tensor dlooked_up,
                   BranchGradient(context, SiteOf(0, DropoutSite::kEmbedding),
                                  dsum, dropped));
  ASSIGN_OR_RETURN(const Tensor whole,
                   context.regions.Whole(context, dlooked_up, storage));
  return ops::EmbeddingBackward(context.stream, whole, context.batch.tokens,
                                first_id_, context.batch.positions, Dropout(),
                                tokens_.gradient(), positions_.gradient());
}

}  // namespace lockstep
