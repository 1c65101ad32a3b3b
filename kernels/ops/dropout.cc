#include "kernels/ops/dropout.h"

#include "absl/strings/str_cat.h"
#include "common/split_mix.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep {

uint64_t SiteKey(uint64_t seed, uint64_t site) {
  return MixBits((MixBits(seed + kSplitMixStep) ^ site) + kSplitMixStep);
}

namespace ops {

absl::Status Dropout(Stream& stream, const Tensor& x,
                     const lockstep::Dropout& dropout, int64_t first_column,
                     const Tensor& out) {
  ArgumentCheck check("dropout", stream);
  check.Float("x", x);
  check.Matrix("out", out, x.rows(), x.cols(), x.dtype());
  check.Dropout(dropout, x.rows());
  check.That(first_column >= 0, absl::StrCat("first column is ", first_column));
  RETURN_IF_ERROR(check.status());
  return stream.backend().dropout(stream, x, dropout, first_column, out);
}

}  // namespace ops
}  // namespace lockstep
