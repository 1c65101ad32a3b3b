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

LanguageModelHead::LanguageModelHead(const ModelSpec& spec,
                                     const ParameterStore& store)
    : norm_(MakeNorm(spec, store, "final_norm")),
      output_(store.Get(spec.tied_embeddings ? "embedding.tokens.weight"
                                             : "head.weight"),
              Parameter()) {}

absl::StatusOr<OwnedTensor> LanguageModelHead::ForwardBackward(
    const PassContext& context, Residual input, LossSums& sums) const {
  const int64_t rows = input.sum.rows(), cols = input.sum.cols();
  NormActivations normed;
  RETURN_IF_ERROR(norm_.Forward(context, std::move(input), normed));
  ASSIGN_OR_RETURN(OwnedTensor dnormed, context.Activation(rows, cols));
  const int64_t step = std::min(rows, LogitRows(output_.out_width()));
  {
    ASSIGN_OR_RETURN(OwnedTensor buffer,
                     LogitsBuffer(context, step, output_.out_width()));
    for (int64_t begin = 0; begin < rows; begin += step) {
      const int64_t count = std::min(step, rows - begin);
      const Tensor x = normed.normed->Rows(begin, count);
      const Tensor logits = buffer->Rows(0, count);
      RETURN_IF_ERROR(output_.Forward(context, x, logits));
      RETURN_IF_ERROR(AddLoss(context, logits,
                              context.batch.targets.Slice(begin, count),
                              LogitsGradient::kInPlace, sums));
      OwnedTensor storage;
      ASSIGN_OR_RETURN(const Tensor dlogits,
                       AsComputeType(context, logits, storage));
      RETURN_IF_ERROR(output_.BackwardWeights(context, x, dlogits));
      RETURN_IF_ERROR(
          output_.BackwardInput(context, dlogits, dnormed->Rows(begin, count)));
    }
  }
  normed.normed.Reset();
  ASSIGN_OR_RETURN(OwnedTensor dsum, context.Activation(rows, cols));
  RETURN_IF_ERROR(norm_.BackwardFirst(context, normed, dnormed, dsum));
  return dsum;
}

absl::Status LanguageModelHead::Evaluate(const PassContext& context,
                                         Residual input, LossSums& sums) const {
  const int64_t rows = input.sum.rows();
  NormActivations normed;
  RETURN_IF_ERROR(norm_.Forward(context, std::move(input), normed));
  const int64_t step = std::min(rows, LogitRows(output_.out_width()));
  ASSIGN_OR_RETURN(OwnedTensor buffer,
                   LogitsBuffer(context, step, output_.out_width()));
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t count = std::min(step, rows - begin);
    const Tensor logits = buffer->Rows(0, count);
    RETURN_IF_ERROR(
        output_.Forward(context, normed.normed->Rows(begin, count), logits));
    RETURN_IF_ERROR(AddLoss(context, logits,
                            context.batch.targets.Slice(begin, count),
                            LogitsGradient::kNone, sums));
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnedTensor> LanguageModelHead::Logits(
    const PassContext& context, Residual input) const {
  const int64_t rows = input.sum.rows();
  NormActivations normed;
  RETURN_IF_ERROR(norm_.Forward(context, std::move(input), normed));
  ASSIGN_OR_RETURN(OwnedTensor logits,
                   LogitsBuffer(context, 1, output_.out_width()));
  RETURN_IF_ERROR(
      output_.Forward(context, normed.normed->Rows(rows - 1, 1), logits));
  return logits;
}

}  // namespace lockstep
