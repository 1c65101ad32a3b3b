#include "kernels/ops/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"

namespace lockstep::cpu {
namespace {

// Calls body(row, first_column, n) for pieces of rows that cover the rows x
// cols matrix, on all threads. Where all operands are dense it is one long row.
template <typename Body>
void ForPieces(CpuStream& stream, int64_t rows, int64_t cols, bool dense,
               const Body& body) {
  if (dense) {
    // Bounds at multiples of a page of bf16.
    stream.pool().Ranges((rows * cols + 2047) / 2048, kGrainElements / 2048,
                         [&](int64_t begin, int64_t end) {
                           const int64_t last =
                               std::min(end * 2048, rows * cols);
                           body(0, begin * 2048, last - begin * 2048);
                         });
    return;
  }
  stream.pool().Ranges(rows, GrainRows(cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row, 0, cols);
  });
}

char* At(const Tensor& tensor, int64_t row, int64_t column) {
  return RowPointer(tensor, row) + column * SizeOf(tensor.dtype());
}

}  // namespace

absl::Status Zero(Stream& stream, const Tensor& out) {
  ForPieces(AsCpu(stream), out.rows(), out.cols(), out.dense(),
            [&](int64_t row, int64_t first, int64_t n) {
              std::memset(At(out, row, first), 0, n * SizeOf(out.dtype()));
            });
  return absl::OkStatus();
}

absl::Status Fill(Stream& stream, float value, const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel = cpu.kernels().elementwise->fill[TypeIndex(out.dtype())];
  ForPieces(cpu, out.rows(), out.cols(), out.dense(),
            [&](int64_t row, int64_t first, int64_t n) {
              kernel(value, At(out, row, first), n);
            });
  return absl::OkStatus();
}

absl::Status Convert(Stream& stream, const Tensor& x, const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const ElementwiseKernels& kernels = *cpu.kernels().elementwise;
  ForPieces(cpu, x.rows(), x.cols(), x.dense() && out.dense(),
            [&](int64_t row, int64_t first, int64_t n) {
              char* from = At(x, row, first);
              char* to = At(out, row, first);
              if (x.dtype() == out.dtype()) {
                std::memmove(to, from, n * SizeOf(x.dtype()));
              } else if (x.dtype() == DType::kFloat32) {
                kernels.to_bf16(reinterpret_cast<float*>(from),
                                reinterpret_cast<Bf16*>(to), n);
              } else {
                kernels.to_fp32(reinterpret_cast<Bf16*>(from),
                                reinterpret_cast<float*>(to), n);
              }
            });
  return absl::OkStatus();
}

absl::Status Add(Stream& stream, const Tensor& a, const Tensor& b,
                 const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel = cpu.kernels().elementwise->add[TypeIndex(out.dtype())];
  ForPieces(cpu, out.rows(), out.cols(), a.dense() && b.dense() && out.dense(),
            [&](int64_t row, int64_t first, int64_t n) {
              kernel(At(a, row, first), At(b, row, first), At(out, row, first),
                     n);
            });
  return absl::OkStatus();
}

absl::Status Scale(Stream& stream, float factor, const Tensor& x) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel = cpu.kernels().elementwise->scale;
  ForPieces(cpu, x.rows(), x.cols(), x.dense(),
            [&](int64_t row, int64_t first, int64_t n) {
              kernel(factor, reinterpret_cast<float*>(At(x, row, first)), n);
            });
  return absl::OkStatus();
}

absl::Status GeluForward(Stream& stream, const Tensor& x, const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().elementwise->gelu_forward[TypeIndex(x.dtype())];
  ForPieces(cpu, x.rows(), x.cols(), x.dense() && out.dense(),
            [&](int64_t row, int64_t first, int64_t n) {
              kernel(At(x, row, first), At(out, row, first), n);
            });
  return absl::OkStatus();
}

absl::Status GeluBackward(Stream& stream, const Tensor& dout, const Tensor& x,
                          const Tensor& dx) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().elementwise->gelu_backward[TypeIndex(x.dtype())];
  ForPieces(cpu, x.rows(), x.cols(), x.dense() && dout.dense() && dx.dense(),
            [&](int64_t row, int64_t first, int64_t n) {
              kernel(At(dout, row, first), At(x, row, first),
                     At(dx, row, first), n);
            });
  return absl::OkStatus();
}

absl::Status SwigluForward(Stream& stream, const Tensor& gate_up,
                           const Tensor& out) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().elementwise->swiglu_forward[TypeIndex(out.dtype())];
  const int64_t width = out.cols();
  ForPieces(cpu, out.rows(), width, false,
            [&](int64_t row, int64_t first, int64_t n) {
              kernel(At(gate_up, row, first), At(gate_up, row, width + first),
                     At(out, row, first), n);
            });
  return absl::OkStatus();
}

absl::Status SwigluBackward(Stream& stream, const Tensor& dout,
                            const Tensor& gate_up, const Tensor& dgate_up) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().elementwise->swiglu_backward[TypeIndex(dout.dtype())];
  const int64_t width = dout.cols();
  ForPieces(cpu, dout.rows(), width, false,
            [&](int64_t row, int64_t first, int64_t n) {
              kernel(At(dout, row, first), At(gate_up, row, first),
                     At(gate_up, row, width + first), At(dgate_up, row, first),
                     At(dgate_up, row, width + first), n);
            });
  return absl::OkStatus();
}

absl::Status Rotary(Stream& stream, const Tensor& x, int64_t head_width,
                    double theta, const Tensor& position,
                    ops::RotaryDirection direction) {
  CpuStream& cpu = AsCpu(stream);
  const ElementwiseKernels& kernels = *cpu.kernels().elementwise;
  const auto turn = kernels.rotary_row[TypeIndex(x.dtype())];
  const int64_t half = head_width / 2;
  const float sign = direction == ops::RotaryDirection::kForward ? 1.0f : -1.0f;
  std::vector<double> frequency(half);
  for (int64_t i = 0; i < half; ++i) {
    frequency[i] = std::pow(
        theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_width));
  }
  const int32_t* positions = position.data<int32_t>();
  cpu.pool().Ranges(
      x.rows(), GrainRows(x.cols()), [&](int64_t begin, int64_t end) {
        std::vector<float> angles(2 * half);
        for (int64_t row = begin; row < end; ++row) {
          kernels.rotary_angles(positions[row], frequency.data(), sign,
                                angles.data(), angles.data() + half, half);
          turn(RowPointer(x, row), x.cols() / head_width, half, angles.data(),
               angles.data() + half);
        }
      });
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
