#include "kernels/ops/dropout.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep {
namespace {

// Finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t SiteKey(uint64_t seed, uint64_t site) { return Mix(Mix(seed) ^ site); }

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
