// Matrix products through oneDNN 2.6.
//
// fp32 goes to dnnl_sgemm. It is the same generated code that the matmul
// primitive runs for plain operands ("gemm:jit"): over the products of GPT-2
// 124M (2,048 rows, activations padded, weights dense, all three passes) both
// reached 145 to 165 GFLOP/s a core of a Xeon with AVX-512, where the best
// square product reached 160. But a primitive costs 0.07 to 0.25 ms to make for
// each new shape, and packed batches have a new number of rows in every step:
// 0.1 ms is 4 % of a product of 2,000 x 256 x 768. A bias is written to the
// output first and accumulated onto: as fast as the primitive's own (158 and
// 156 GFLOP/s), 2 % better than adding it afterwards.
//
// bf16 is either native (a matmul primitive, kept by shape: bf16 primitives
// have no cheaper form) or widened to fp32 in blocks in counted scratch. The
// Xeon without AMX multiplies bf16 at half its fp32 rate (77 to 150 GFLOP/s a
// core), a Zen 5 at twice (520 to 260): see DetectBf16Product.
#include "kernels/ops/matmul.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/model/workspace.h"
#include "common/status_macros.h"
#include "kernels/cpu/bf16_matmul.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"
#include "oneapi/dnnl/dnnl.h"

namespace lockstep::cpu {
namespace {

// A matrix operand as it is stored.
struct Operand {
  const float* data;
  Transpose transpose;
  int64_t stride;
};

absl::Status Sgemm(int64_t m, int64_t n, int64_t k, const Operand& a,
                   const Operand& b, float beta, float* c, int64_t c_stride) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transpose == Transpose::kYes ? 'T' : 'N',
                 b.transpose == Transpose::kYes ? 'T' : 'N', m, n, k, 1.0f,
                 a.data, a.stride, b.data, b.stride, beta, c, c_stride);
  if (status != dnnl_success) {
    return absl::InternalError(absl::StrCat("oneDNN's sgemm of ", m, " x ", n,
                                            " x ", k, " failed with status ",
                                            static_cast<int>(status)));
  }
  return absl::OkStatus();
}

// out[rows] = bias in each row, or 0.
void FillRows(CpuStream& cpu, const float* bias, float* out, int64_t stride,
              int64_t rows, int64_t cols) {
  cpu.pool().Ranges(rows, GrainRows(cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* to = out + row * stride;
      if (bias != nullptr) {
        std::memcpy(to, bias, cols * sizeof(float));
      } else {
        std::fill(to, to + cols, 0.0f);
      }
    }
  });
}

// Extents of the blocks that bf16 operands are widened in: scratch stays below
// 3 x 34 MB, and an element is converted once for 2,048 multiplications.
constexpr int64_t kOuterBlock = kWidenedOuterBlock;
constexpr int64_t kInnerBlock = kWidenedInnerBlock;

// fp32 scratch for one block of a matrix.
struct Block {
  Buffer memory;
  int64_t stride = 0;
  float* data() const { return static_cast<float*>(memory.data()); }
};

absl::StatusOr<Block> AllocateBlock(CpuStream& cpu, int64_t rows,
                                    int64_t cols) {
  Block block;
  block.stride = PaddedRowStride(cols, DType::kFloat32);
  ASSIGN_OR_RETURN(block.memory,
                   cpu.allocator().Allocate(rows * block.stride * sizeof(float),
                                            MemoryCategory::kBuffer));
  return block;
}

void Widen(CpuStream& cpu, const Bf16* x, int64_t stride, int64_t rows,
           int64_t cols, const Block& out) {
  cpu.pool().Ranges(rows, GrainRows(cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cpu.kernels().elementwise->to_fp32(x + row * stride,
                                         out.data() + row * out.stride, cols);
    }
  });
}

void Narrow(CpuStream& cpu, const Block& x, int64_t rows, int64_t cols,
            Bf16* out, int64_t stride) {
  cpu.pool().Ranges(rows, GrainRows(cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cpu.kernels().elementwise->to_bf16(x.data() + row * x.stride,
                                         out + row * stride, cols);
    }
  });
}

// Widens the (outer, inner) block at (outer_begin, inner_begin) of an operand,
// which is stored the other way round if `inner_first`.
void WidenOperand(CpuStream& cpu, const Tensor& x, bool inner_first,
                  int64_t outer_begin, int64_t outer, int64_t inner_begin,
                  int64_t inner, const Block& out) {
  const Bf16* data = x.data<Bf16>();
  if (inner_first) {
    Widen(cpu, data + inner_begin * x.row_stride() + outer_begin,
          x.row_stride(), inner, outer, out);
  } else {
    Widen(cpu, data + outer_begin * x.row_stride() + inner_begin,
          x.row_stride(), outer, inner, out);
  }
}

absl::Status WidenedMatmul(CpuStream& cpu, const Tensor& a,
                           Transpose transpose_a, const Tensor& b,
                           Transpose transpose_b, const float* bias,
                           Accumulate accumulate, const Tensor& out, int64_t m,
                           int64_t n, int64_t k) {
  const bool a_inner_first = transpose_a == Transpose::kYes;
  const bool b_inner_first = transpose_b == Transpose::kNo;
  const int64_t m_block = std::min(m, kOuterBlock);
  const int64_t n_block = std::min(n, kOuterBlock);
  const int64_t k_block = std::min(k, kInnerBlock);
  ASSIGN_OR_RETURN(Block wide_a, a_inner_first
                                     ? AllocateBlock(cpu, k_block, m_block)
                                     : AllocateBlock(cpu, m_block, k_block));
  ASSIGN_OR_RETURN(Block wide_b, b_inner_first
                                     ? AllocateBlock(cpu, k_block, n_block)
                                     : AllocateBlock(cpu, n_block, k_block));
  const bool narrow = out.dtype() == DType::kBFloat16;
  Block wide_out;
  if (narrow) {
    ASSIGN_OR_RETURN(wide_out, AllocateBlock(cpu, m_block, n_block));
  }
  for (int64_t n_begin = 0; n_begin < n; n_begin += n_block) {
    const int64_t cols = std::min(n_block, n - n_begin);
    for (int64_t m_begin = 0; m_begin < m; m_begin += m_block) {
      const int64_t rows = std::min(m_block, m - m_begin);
      const int64_t offset = m_begin * out.row_stride() + n_begin;
      float* to = narrow ? wide_out.data() : out.data<float>() + offset;
      const int64_t stride = narrow ? wide_out.stride : out.row_stride();
      if (bias != nullptr) {
        FillRows(cpu, bias + n_begin, to, stride, rows, cols);
      } else if (narrow && accumulate == Accumulate::kYes) {
        Widen(cpu, out.data<Bf16>() + offset, out.row_stride(), rows, cols,
              wide_out);
      }
      for (int64_t k_begin = 0; k_begin < k; k_begin += k_block) {
        const int64_t inner = std::min(k_block, k - k_begin);
        WidenOperand(cpu, a, a_inner_first, m_begin, rows, k_begin, inner,
                     wide_a);
        // With one block along K, B's is good for all blocks along M.
        if (m_begin == 0 || k > k_block) {
          WidenOperand(cpu, b, b_inner_first, n_begin, cols, k_begin, inner,
                       wide_b);
        }
        const bool add =
            k_begin > 0 || bias != nullptr || accumulate == Accumulate::kYes;
        RETURN_IF_ERROR(Sgemm(rows, cols, inner,
                              {wide_a.data(), transpose_a, wide_a.stride},
                              {wide_b.data(), transpose_b, wide_b.stride},
                              add ? 1.0f : 0.0f, to, stride));
      }
      if (narrow) {
        Narrow(cpu, wide_out, rows, cols, out.data<Bf16>() + offset,
               out.row_stride());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Matmul(Stream& stream, const Tensor& a, Transpose transpose_a,
                    const Tensor& b, Transpose transpose_b, const Tensor& bias,
                    Accumulate accumulate, const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const int64_t m = out.rows();
  const int64_t n = out.cols();
  const int64_t k = transpose_a == Transpose::kYes ? a.rows() : a.cols();
  if (m == 0 || n == 0) return absl::OkStatus();
  const float* bias_data = bias.data<float>();
  if (k == 0) {
    if (accumulate == Accumulate::kYes) return absl::OkStatus();
    if (bias.empty()) return Zero(stream, out);
    for (int64_t row = 0; row < m; ++row) {
      RETURN_IF_ERROR(Convert(stream, bias, out.Rows(row, 1)));
    }
    return absl::OkStatus();
  }
  cpu.pool().Enter();
  if (a.dtype() == DType::kFloat32) {
    if (bias_data != nullptr) {
      FillRows(cpu, bias_data, out.data<float>(), out.row_stride(), m, n);
    }
    const bool add = bias_data != nullptr || accumulate == Accumulate::kYes;
    return Sgemm(m, n, k, {a.data<float>(), transpose_a, a.row_stride()},
                 {b.data<float>(), transpose_b, b.row_stride()},
                 add ? 1.0f : 0.0f, out.data<float>(), out.row_stride());
  }
  if (cpu.bf16_product() == Bf16Product::kNative) {
    return cpu.bf16_matmul().Run(cpu, a, transpose_a, b, transpose_b, bias,
                                 accumulate, out);
  }
  return WidenedMatmul(cpu, a, transpose_a, b, transpose_b, bias_data,
                       accumulate, out, m, n, k);
}

absl::Status ColumnSum(Stream& stream, const Tensor& dy, Accumulate accumulate,
                       const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel = cpu.kernels().reduce->column_sum[TypeIndex(dy.dtype())];
  const int64_t element = SizeOf(dy.dtype());
  // A thread owns columns, in multiples of a strip of the kernel; rows are
  // summed in blocks that don't depend on the number of threads.
  constexpr int64_t kStrip = 128;
  cpu.pool().Ranges(dy.cols(), kStrip, [&](int64_t begin, int64_t end) {
    kernel(static_cast<const char*>(dy.raw()) + begin * element,
           dy.row_stride(), dy.rows(), end - begin,
           accumulate == Accumulate::kYes, out.data<float>() + begin);
  });
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
