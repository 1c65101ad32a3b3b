#include "kernels/ops/cross_entropy.h"

#include <cstdint>
#include <cstring>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"

namespace lockstep::cpu {

absl::Status CrossEntropy(Stream& stream, const Tensor& logits,
                          const Tensor& target, const StepScalars* scalars,
                          LogitsGradient gradient, const Tensor& loss,
                          const Tensor& correct) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().cross_entropy->row[TypeIndex(logits.dtype())];
  const bool in_place = gradient == LogitsGradient::kInPlace;
  const float factor = in_place ? scalars->inverse_valid_tokens : 0.0f;
  const int32_t* targets = target.data<int32_t>();
  const int64_t cols = logits.cols();
  cpu.pool().Ranges(
      logits.rows(), GrainRows(cols), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          int32_t* right =
              correct.empty() ? nullptr : correct.data<int32_t>() + row;
          float& out = loss.data<float>()[row];
          if (targets[row] >= 0) {
            out = kernel(RowPointer(logits, row), cols, targets[row], in_place,
                         factor, right);
            continue;
          }
          out = 0.0f;
          if (right != nullptr) *right = 0;
          if (in_place) {
            std::memset(RowPointer(logits, row), 0,
                        cols * SizeOf(logits.dtype()));
          }
        }
      });
  return absl::OkStatus();
}

absl::Status SumInto(Stream& stream, const Tensor& x, double* out) {
  double sum = 0.0;
  for (int64_t i = 0; i < x.elements(); ++i) sum += x.data<float>()[i];
  *out += sum;
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
