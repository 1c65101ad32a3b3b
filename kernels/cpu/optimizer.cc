#include "kernels/ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"

namespace lockstep::cpu {
namespace {

AdamStep ToAdamStep(const ops::AdamWConstants& constants,
                    const StepScalars& scalars) {
  return {
      .beta1 = constants.beta1,
      .beta2 = constants.beta2,
      .epsilon = constants.epsilon,
      .weight_decay = constants.weight_decay,
      .learning_rate = scalars.learning_rate,
      .clip_factor = scalars.clip_factor,
      .inverse_correction1 = 1.0f / scalars.bias_correction1,
      .inverse_root_correction2 = 1.0f / std::sqrt(scalars.bias_correction2)};
}

Bf16* ComputeCopy(const Tensor& compute, int64_t begin) {
  return compute.empty() ? nullptr : compute.data<Bf16>() + begin;
}

// Calls body(begin, n) on ranges of whole cache lines.
template <typename Body>
void ForRanges(CpuStream& stream, int64_t n, const Body& body) {
  constexpr int64_t kLine = 32;
  stream.pool().Ranges((n + kLine - 1) / kLine, kGrainElements / kLine,
                       [&](int64_t begin, int64_t end) {
                         const int64_t last = std::min(end * kLine, n);
                         body(begin * kLine, last - begin * kLine);
                       });
}

}  // namespace

absl::Status AdamW(Stream& stream, const ops::AdamWConstants& constants,
                   const StepScalars* scalars, const Tensor& parameter,
                   const Tensor& gradient, const Tensor& first_moment,
                   const Tensor& second_moment, const Tensor& compute) {
  if (scalars->finite == 0) return absl::OkStatus();
  CpuStream& cpu = AsCpu(stream);
  const AdamStep step = ToAdamStep(constants, *scalars);
  ForRanges(cpu, parameter.elements(), [&](int64_t begin, int64_t n) {
    cpu.kernels().optimizer->adamw(
        step, parameter.data<float>() + begin, gradient.data<float>() + begin,
        first_moment.data<float>() + begin, second_moment.data<float>() + begin,
        ComputeCopy(compute, begin), n);
  });
  return absl::OkStatus();
}

absl::Status Sgd(Stream& stream, const ops::SgdConstants& constants,
                 const StepScalars* scalars, const Tensor& parameter,
                 const Tensor& gradient, const Tensor& momentum,
                 const Tensor& compute) {
  if (scalars->finite == 0) return absl::OkStatus();
  CpuStream& cpu = AsCpu(stream);
  const MomentumStep step = {.momentum = constants.momentum,
                             .weight_decay = constants.weight_decay,
                             .learning_rate = scalars->learning_rate,
                             .clip_factor = scalars->clip_factor,
                             .ratio = 1.0f};
  ForRanges(cpu, parameter.elements(), [&](int64_t begin, int64_t n) {
    cpu.kernels().optimizer->sgd(
        step, parameter.data<float>() + begin, gradient.data<float>() + begin,
        momentum.data<float>() + begin, ComputeCopy(compute, begin), n);
  });
  return absl::OkStatus();
}

absl::Status Lars(Stream& stream, const ops::LarsConstants& constants,
                  const StepScalars* scalars, const float* ratio,
                  const Tensor& parameter, const Tensor& gradient,
                  const Tensor& momentum, const Tensor& compute) {
  if (scalars->finite == 0) return absl::OkStatus();
  CpuStream& cpu = AsCpu(stream);
  const MomentumStep step = {.momentum = constants.momentum,
                             .weight_decay = constants.weight_decay,
                             .learning_rate = scalars->learning_rate,
                             .clip_factor = scalars->clip_factor,
                             .ratio = *ratio};
  ForRanges(cpu, parameter.elements(), [&](int64_t begin, int64_t n) {
    cpu.kernels().optimizer->lars(
        step, parameter.data<float>() + begin, gradient.data<float>() + begin,
        momentum.data<float>() + begin, ComputeCopy(compute, begin), n);
  });
  return absl::OkStatus();
}

absl::Status LambMoments(Stream& stream, const ops::AdamWConstants& constants,
                         const StepScalars* scalars, const Tensor& parameter,
                         const Tensor& gradient, const Tensor& first_moment,
                         const Tensor& second_moment) {
  if (scalars->finite == 0) return absl::OkStatus();
  CpuStream& cpu = AsCpu(stream);
  const AdamStep step = ToAdamStep(constants, *scalars);
  ForRanges(cpu, parameter.elements(), [&](int64_t begin, int64_t n) {
    cpu.kernels().optimizer->lamb_moments(
        step, parameter.data<float>() + begin, gradient.data<float>() + begin,
        first_moment.data<float>() + begin, second_moment.data<float>() + begin,
        n);
  });
  return absl::OkStatus();
}

absl::Status LambApply(Stream& stream, const StepScalars* scalars,
                       const float* ratio, const Tensor& parameter,
                       const Tensor& update, const Tensor& compute) {
  if (scalars->finite == 0) return absl::OkStatus();
  CpuStream& cpu = AsCpu(stream);
  const float rate = scalars->learning_rate * *ratio;
  ForRanges(cpu, parameter.elements(), [&](int64_t begin, int64_t n) {
    cpu.kernels().optimizer->lamb_apply(rate, parameter.data<float>() + begin,
                                        update.data<float>() + begin,
                                        ComputeCopy(compute, begin), n);
  });
  return absl::OkStatus();
}

absl::Status SumOfSquares(Stream& stream, const Tensor& x, double* out) {
  CpuStream& cpu = AsCpu(stream);
  // Blocks are short enough for fp32 partial sums, and the same whatever the
  // number of threads.
  constexpr int64_t kBlock = 4096;
  const int64_t n = x.elements();
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> partial(blocks);
  cpu.pool().Ranges(
      blocks, kGrainElements / kBlock, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          const int64_t first = block * kBlock;
          partial[block] = cpu.kernels().reduce->square_sum(
              x.data<float>() + first, std::min(kBlock, n - first));
        }
      });
  double sum = 0.0;
  for (double block : partial) sum += block;
  *out += sum;
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
