#include "worker/nn/embedding.h"

#include "common/status_macros.h"
#include "kernels/ops/embedding.h"

namespace lockstep {
namespace {

constexpr char kPositions[] = "embedding.positions.weight";

}  // namespace

Embedding::Embedding(const ModelSpec& spec, const ParameterStore& store)
    : width_(spec.width),
      tokens_(store.Get("embedding.tokens.weight")),
      positions_(store.Contains(kPositions) ? store.Get(kPositions)
                                            : Parameter()) {}

absl::StatusOr<Residual> Embedding::Forward(const PassContext& context,
                                            OwnedTensor& saved) const {
  ASSIGN_OR_RETURN(saved, context.Activation(context.batch.rows, width_));
  RETURN_IF_ERROR(ops::EmbeddingForward(
      context.stream, context.batch.tokens, context.batch.positions,
      tokens_.value(), positions_.value(),
      context.DropoutAt(SiteOf(0, DropoutSite::kEmbedding)), saved));
  Residual residual;
  residual.sum = saved;
  return residual;
}

absl::Status Embedding::Backward(const PassContext& context,
                                 const Tensor& dsum) const {
  return ops::EmbeddingBackward(
      context.stream, dsum, context.batch.tokens, context.batch.positions,
      context.DropoutAt(SiteOf(0, DropoutSite::kEmbedding)), tokens_.gradient(),
      positions_.gradient());
}

}  // namespace lockstep
