#include "kernels/ops/cross_entropy.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep::ops {

absl::Status CrossEntropy(Stream& stream, const Tensor& logits,
                          const Tensor& target, const StepScalars* scalars,
                          LogitsGradient gradient, const Tensor& loss,
                          const Tensor& correct) {
  const int64_t rows = logits.rows();
  ArgumentCheck check("cross-entropy", stream);
  check.Float("logits", logits);
  check.That(logits.cols() > 0, "logits have no columns");
  check.Vector("target", target, rows, DType::kInt32);
  check.Vector("loss", loss, rows, DType::kFloat32);
  if (!correct.empty()) check.Vector("correct", correct, rows, DType::kInt32);
  if (gradient == LogitsGradient::kInPlace) {
    check.NotNull("step scalars", scalars);
  }
  RETURN_IF_ERROR(check.status());
  return stream.backend().cross_entropy(stream, logits, target, scalars,
                                        gradient, loss, correct);
}

absl::Status CrossEntropyStatistics(Stream& stream, const Tensor& logits,
                                    const Tensor& target, int64_t first_id,
                                    const Tensor& statistics) {
  const int64_t rows = logits.rows();
  ArgumentCheck check("cross-entropy statistics", stream);
  check.Float("logits", logits);
  check.That(logits.cols() > 0, "logits have no columns");
  check.Vector("target", target, rows, DType::kInt32);
  check.Matrix("statistics", statistics, rows, kCrossEntropyStatistics,
               DType::kFloat32);
  check.That(statistics.dense(), "statistics have padded rows");
  RETURN_IF_ERROR(check.status());
  return stream.backend().cross_entropy_statistics(stream, logits, target,
                                                   first_id, statistics);
}

absl::Status CrossEntropyFromStatistics(
    Stream& stream, const Tensor& logits, const Tensor& target,
    int64_t first_id, const Tensor& statistics, const StepScalars* scalars,
    LogitsGradient gradient, const Tensor& loss, const Tensor& correct) {
  const int64_t rows = logits.rows();
  ArgumentCheck check("cross-entropy from statistics", stream);
  check.Float("logits", logits);
  check.That(logits.cols() > 0, "logits have no columns");
  check.Vector("target", target, rows, DType::kInt32);
  check.That(rows > 0 && statistics.rows() % rows == 0,
             absl::StrCat("statistics have ", statistics.rows(),
                          " rows, want a multiple of ", rows));
  check.Matrix("statistics", statistics, statistics.rows(),
               kCrossEntropyStatistics, DType::kFloat32);
  check.That(statistics.dense(), "statistics have padded rows");
  check.Vector("loss", loss, rows, DType::kFloat32);
  if (!correct.empty()) check.Vector("correct", correct, rows, DType::kInt32);
  if (gradient == LogitsGradient::kInPlace) {
    check.NotNull("step scalars", scalars);
  }
  RETURN_IF_ERROR(check.status());
  return stream.backend().cross_entropy_from_statistics(
      stream, logits, target, first_id, statistics, scalars, gradient, loss,
      correct);
}

absl::Status SumInto(Stream& stream, const Tensor& x, double* out) {
  ArgumentCheck check("sum", stream);
  check.Vector("x", x, x.elements(), DType::kFloat32);
  check.NotNull("out", out);
  RETURN_IF_ERROR(check.status());
  return stream.backend().sum_into(stream, x, out);
}

}  // namespace lockstep::ops
