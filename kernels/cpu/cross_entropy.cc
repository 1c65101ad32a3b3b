#include "kernels/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
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

namespace {

// A target's column in a part of the vocabulary; -1 if it isn't there.
int64_t ColumnOf(int32_t target, int64_t first_id, int64_t cols) {
  const int64_t column = target - first_id;
  return target >= 0 && column >= 0 && column < cols ? column : -1;
}

// What the parts' statistics of one row come to.
struct WholeRow {
  float largest = 0.0f;
  float sum = 0.0f;
  float chosen = 0.0f;
  bool correct = false;
};

WholeRow Combine(const CrossEntropyKernels& kernels, const float* statistics,
                 int64_t row, int64_t rows, int64_t parts) {
  const auto of = [&](int64_t part) {
    return statistics + (part * rows + row) * ops::kCrossEntropyStatistics;
  };
  WholeRow whole;
  whole.largest = of(0)[0];
  whole.chosen = of(0)[2];
  for (int64_t part = 1; part < parts; ++part) {
    whole.largest = std::max(whole.largest, of(part)[0]);
    whole.chosen = std::max(whole.chosen, of(part)[2]);
  }
  // The lowest id among equals: no earlier part has as large a logit.
  bool earlier = false;
  for (int64_t part = 0; part < parts; ++part) {
    const float* own = of(part);
    whole.sum += own[1] * kernels.exponential(own[0] - whole.largest);
    if (own[0] != whole.largest) continue;
    whole.correct |= !earlier && own[3] == 1.0f;
    earlier = true;
  }
  return whole;
}

}  // namespace

absl::Status CrossEntropyStatistics(Stream& stream, const Tensor& logits,
                                    const Tensor& target, int64_t first_id,
                                    const Tensor& statistics) {
  CpuStream& cpu = AsCpu(stream);
  const auto kernel =
      cpu.kernels().cross_entropy->statistics[TypeIndex(logits.dtype())];
  const int32_t* targets = target.data<int32_t>();
  const int64_t cols = logits.cols();
  cpu.pool().Ranges(
      logits.rows(), GrainRows(cols), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          kernel(RowPointer(logits, row), cols,
                 ColumnOf(targets[row], first_id, cols),
                 statistics.data<float>() + row * ops::kCrossEntropyStatistics);
        }
      });
  return absl::OkStatus();
}

absl::Status CrossEntropyFromStatistics(
    Stream& stream, const Tensor& logits, const Tensor& target,
    int64_t first_id, const Tensor& statistics, const StepScalars* scalars,
    LogitsGradient gradient, const Tensor& loss, const Tensor& correct) {
  CpuStream& cpu = AsCpu(stream);
  const CrossEntropyKernels& kernels = *cpu.kernels().cross_entropy;
  const auto kernel = kernels.gradient[TypeIndex(logits.dtype())];
  const bool in_place = gradient == LogitsGradient::kInPlace;
  const float factor = in_place ? scalars->inverse_valid_tokens : 0.0f;
  const int32_t* targets = target.data<int32_t>();
  const int64_t rows = logits.rows(), cols = logits.cols();
  const int64_t parts = statistics.rows() / rows;
  cpu.pool().Ranges(rows, GrainRows(cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const bool valid = targets[row] >= 0;
      const WholeRow whole =
          Combine(kernels, statistics.data<float>(), row, rows, parts);
      float out = 0.0f;
      if (valid) {
        out = static_cast<float>(
            std::log(static_cast<double>(whole.sum)) +
            (static_cast<double>(whole.largest) - whole.chosen));
        if (std::isnan(whole.sum)) out = whole.sum;
      }
      loss.data<float>()[row] = out;
      if (!correct.empty()) {
        correct.data<int32_t>()[row] = valid && whole.correct ? 1 : 0;
      }
      if (!in_place) continue;
      if (valid) {
        kernel(RowPointer(logits, row), cols,
               ColumnOf(targets[row], first_id, cols), whole.largest, whole.sum,
               whole.chosen, factor);
      } else {
        std::memset(RowPointer(logits, row), 0, cols * SizeOf(logits.dtype()));
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
