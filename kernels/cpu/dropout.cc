#include "kernels/ops/dropout.h"

#include <cstdint>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/row_dropout.h"

namespace lockstep::cpu {

absl::Status Dropout(Stream& stream, const Tensor& x,
                     const lockstep::Dropout& dropout, int64_t first_column,
                     const Tensor& out) {
  if (dropout.probability <= 0.0f) {
    return x.raw() == out.raw() ? absl::OkStatus() : Convert(stream, x, out);
  }
  CpuStream& cpu = AsCpu(stream);
  const auto kernel = cpu.kernels().dropout->row[TypeIndex(x.dtype())];
  const RowDropout rows = ToRowDropout(dropout);
  cpu.pool().Ranges(x.rows(), GrainRows(x.cols()),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        kernel(rows, row, first_column, RowPointer(x, row),
                               RowPointer(out, row), x.cols());
                      }
                    });
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
