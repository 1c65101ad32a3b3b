#include "kernels/ops/norm.h"

#include <algorithm>
#include <cstdint>

#include "common/status_macros.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/row_dropout.h"

namespace lockstep::cpu {
namespace {

NormRows ToNormRows(const Norm& norm, int64_t cols, const Tensor& mean,
                    const Tensor& rstd) {
  NormRows rows;
  rows.cols = cols;
  rows.centred = norm.kind == NormKind::kLayerNorm;
  rows.epsilon = norm.epsilon;
  rows.weight = norm.weight.data<float>();
  rows.bias = norm.bias.data<float>();
  rows.mean = mean.data<float>();
  rows.rstd = rstd.data<float>();
  return rows;
}

}  // namespace

absl::Status NormForward(Stream& stream, const Norm& norm, const Tensor& x,
                         const Tensor& out, const Tensor& mean,
                         const Tensor& rstd) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel = cpu.kernels().norm->forward[TypeIndex(x.dtype())];
  const NormRows rows = ToNormRows(norm, x.cols(), mean, rstd);
  cpu.pool().Ranges(
      x.rows(), GrainRows(x.cols()), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          kernel(rows, row, RowPointer(x, row), RowPointer(out, row));
        }
      });
  return absl::OkStatus();
}

absl::Status ResidualNormForward(Stream& stream, const Norm& norm,
                                 const Tensor& residual, const Tensor& branch,
                                 const lockstep::Dropout& dropout,
                                 const Tensor& sum, const Tensor& out,
                                 const Tensor& mean, const Tensor& rstd) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().norm->residual_forward[TypeIndex(residual.dtype())];
  const NormRows rows = ToNormRows(norm, residual.cols(), mean, rstd);
  const RowDropout dropped = ToRowDropout(dropout);
  cpu.pool().Ranges(residual.rows(), GrainRows(residual.cols()),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        kernel(rows, dropped, row, RowPointer(residual, row),
                               RowPointer(branch, row), RowPointer(sum, row),
                               RowPointer(out, row));
                      }
                    });
  return absl::OkStatus();
}

absl::Status NormBackward(Stream& stream, const Norm& norm, const Tensor& dout,
                          const Tensor& x, const Tensor& mean,
                          const Tensor& rstd, const Tensor& dresidual,
                          const Tensor& dx, const Tensor& dweight,
                          const Tensor& dbias) {
  CpuStream& cpu = AsCpu(stream);
  const LevelKernels& kernels = cpu.kernels();
  const auto kernel = kernels.norm->backward[TypeIndex(x.dtype())];
  const int64_t cols = x.cols();
  const NormRows rows = ToNormRows(norm, cols, mean, rstd);
  // Gradients of weight and bias are summed within blocks of rows, whose bounds
  // depend on the number of rows only, then over blocks in their order.
  const int64_t block_rows = std::max<int64_t>(32, (x.rows() + 255) / 256);
  const int64_t blocks = (x.rows() + block_rows - 1) / block_rows;
  if (blocks == 0) return absl::OkStatus();
  const int64_t width = dbias.empty() ? cols : 2 * cols;
  ASSIGN_OR_RETURN(Buffer scratch,
                   stream.allocator().Allocate(blocks * width * sizeof(float),
                                               MemoryCategory::kBuffer));
  float* partial = static_cast<float*>(scratch.data());
  cpu.pool().Ranges(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* sums = partial + block * width;
      std::fill(sums, sums + width, 0.0f);
      const int64_t last = std::min((block + 1) * block_rows, x.rows());
      for (int64_t row = block * block_rows; row < last; ++row) {
        kernel(rows, row, RowPointer(dout, row), RowPointer(x, row),
               dresidual.empty() ? nullptr : RowPointer(dresidual, row),
               RowPointer(dx, row), sums,
               dbias.empty() ? nullptr : sums + cols);
      }
    }
  });
  const auto column_sum = kernels.reduce->column_sum[0];
  column_sum(partial, width, blocks, cols, true, dweight.data<float>());
  if (!dbias.empty()) {
    column_sum(partial + cols, width, blocks, cols, true, dbias.data<float>());
  }
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
