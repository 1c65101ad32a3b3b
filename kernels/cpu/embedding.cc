#include "kernels/ops/embedding.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/row_dropout.h"

namespace lockstep::cpu {

// Columns are handed to threads in multiples of these: whole cache lines, and
// whole groups of four random words.
constexpr int64_t kColumnBlock = 16;

absl::Status EmbeddingForward(Stream& stream, const Tensor& token,
                              int64_t first_id, const Tensor& position,
                              const Tensor& tokens_weight,
                              const Tensor& positions_weight,
                              const lockstep::Dropout& dropout,
                              const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().embedding->forward[TypeIndex(tokens_weight.dtype())]
                                      [TypeIndex(out.dtype())];
  const RowDropout dropped = ToRowDropout(dropout);
  const int32_t* tokens = token.data<int32_t>();
  const int32_t* positions = position.data<int32_t>();
  const int64_t ids = tokens_weight.rows();
  cpu.pool().Ranges(
      out.rows(), GrainRows(out.cols()), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t id = tokens[row] - first_id;
          kernel(dropped, row,
                 id >= 0 && id < ids ? RowPointer(tokens_weight, id) : nullptr,
                 positions_weight.empty()
                     ? nullptr
                     : RowPointer(positions_weight, positions[row]),
                 RowPointer(out, row), out.cols());
        }
      });
  return absl::OkStatus();
}

absl::Status EmbeddingBackward(Stream& stream, const Tensor& dout,
                               const Tensor& token, int64_t first_id,
                               const Tensor& position,
                               const lockstep::Dropout& dropout,
                               const Tensor& dtokens,
                               const Tensor& dpositions) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().embedding->backward[TypeIndex(dout.dtype())];
  const RowDropout dropped = ToRowDropout(dropout);
  const int32_t* tokens = token.data<int32_t>();
  const int32_t* positions = position.data<int32_t>();
  const int64_t element = SizeOf(dout.dtype());
  const int64_t ids = dtokens.rows();
  // A thread owns columns and takes the rows in order, as several rows may add
  // to one row of the gradient.
  cpu.pool().Ranges(dout.cols(), kColumnBlock, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < dout.rows(); ++row) {
      const int64_t id = tokens[row] - first_id;
      kernel(dropped, row, begin, RowPointer(dout, row) + begin * element,
             id >= 0 && id < ids
                 ? dtokens.data<float>() + id * dtokens.row_stride() + begin
                 : nullptr,
             dpositions.empty()
                 ? nullptr
                 : dpositions.data<float>() +
                       positions[row] * dpositions.row_stride() + begin,
             end - begin);
    }
  });
  return absl::OkStatus();
}

absl::Status SegmentMeanForward(Stream& stream, const Tensor& x,
                                const Tensor& bounds, const Tensor& pooled) {
  CpuStream& cpu = AsCpu(stream);
  const int type = TypeIndex(x.dtype());
  const EmbeddingKernels& kernels = *cpu.kernels().embedding;
  const int32_t* bound = bounds.data<int32_t>();
  const int64_t cols = x.cols();
  cpu.pool().Ranges(pooled.rows(), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> sum(cols);
    for (int64_t segment = begin; segment < end; ++segment) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      const int64_t first = bound[segment], last = bound[segment + 1];
      for (int64_t row = first; row < last; ++row) {
        kernels.accumulate[type](RowPointer(x, row), sum.data(), cols);
      }
      const float factor =
          last > first ? 1.0f / static_cast<float>(last - first) : 0.0f;
      kernels.scaled_store[type](factor, sum.data(),
                                 RowPointer(pooled, segment), cols);
    }
  });
  return absl::OkStatus();
}

absl::Status SegmentMeanBackward(Stream& stream, const Tensor& dpooled,
                                 const Tensor& bounds, const Tensor& dx) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().embedding->scaled_copy[TypeIndex(dx.dtype())];
  const int32_t* bound = bounds.data<int32_t>();
  const int64_t segments = dpooled.rows();
  const int64_t cols = dx.cols();
  cpu.pool().Ranges(
      dx.rows(), GrainRows(cols), [&](int64_t begin, int64_t end) {
        // The segment that holds the row: the last that starts at or before it.
        for (int64_t row = begin; row < end; ++row) {
          const int64_t segment =
              std::upper_bound(bound, bound + segments + 1, row) - bound - 1;
          if (segment < 0 || segment >= segments) {
            std::memset(RowPointer(dx, row), 0, cols * SizeOf(dx.dtype()));
            continue;
          }
          kernel(1.0f / static_cast<float>(bound[segment + 1] - bound[segment]),
                 RowPointer(dpooled, segment), RowPointer(dx, row), cols);
        }
      });
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
