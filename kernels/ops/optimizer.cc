#include "kernels/ops/optimizer.h"

#include <initializer_list>

#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep::ops {
namespace {

struct State {
  const char* name;
  const Tensor& tensor;
};

void CheckUpdate(const StepScalars* scalars, const Tensor& parameter,
                 std::initializer_list<State> states, const Tensor& compute,
                 ArgumentCheck& check) {
  check.NotNull("step scalars", scalars);
  const int64_t n = parameter.elements();
  check.Vector("parameter", parameter, n, DType::kFloat32);
  for (const State& state : states) {
    check.Vector(state.name, state.tensor, n, DType::kFloat32);
  }
  if (!compute.empty()) {
    check.Vector("compute", compute, n, DType::kBFloat16);
  }
}

}  // namespace

absl::Status AdamW(Stream& stream, const AdamWConstants& constants,
                   const StepScalars* scalars, const Tensor& parameter,
                   const Tensor& gradient, const Tensor& first_moment,
                   const Tensor& second_moment, const Tensor& compute) {
  ArgumentCheck check("adamw", stream);
  CheckUpdate(scalars, parameter,
              {{"gradient", gradient},
               {"first_moment", first_moment},
               {"second_moment", second_moment}},
              compute, check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().adamw(stream, constants, scalars, parameter, gradient,
                                first_moment, second_moment, compute);
}

absl::Status Sgd(Stream& stream, const SgdConstants& constants,
                 const StepScalars* scalars, const Tensor& parameter,
                 const Tensor& gradient, const Tensor& momentum,
                 const Tensor& compute) {
  ArgumentCheck check("sgd", stream);
  CheckUpdate(scalars, parameter,
              {{"gradient", gradient}, {"momentum", momentum}}, compute, check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().sgd(stream, constants, scalars, parameter, gradient,
                              momentum, compute);
}

absl::Status Lars(Stream& stream, const LarsConstants& constants,
                  const StepScalars* scalars, const float* ratio,
                  const Tensor& parameter, const Tensor& gradient,
                  const Tensor& momentum, const Tensor& compute) {
  ArgumentCheck check("lars", stream);
  check.NotNull("ratio", ratio);
  CheckUpdate(scalars, parameter,
              {{"gradient", gradient}, {"momentum", momentum}}, compute, check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().lars(stream, constants, scalars, ratio, parameter,
                               gradient, momentum, compute);
}

absl::Status LambMoments(Stream& stream, const AdamWConstants& constants,
                         const StepScalars* scalars, const Tensor& parameter,
                         const Tensor& gradient, const Tensor& first_moment,
                         const Tensor& second_moment) {
  ArgumentCheck check("lamb moments", stream);
  CheckUpdate(scalars, parameter,
              {{"gradient", gradient},
               {"first_moment", first_moment},
               {"second_moment", second_moment}},
              Tensor(), check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().lamb_moments(stream, constants, scalars, parameter,
                                       gradient, first_moment, second_moment);
}

absl::Status LambApply(Stream& stream, const StepScalars* scalars,
                       const float* ratio, const Tensor& parameter,
                       const Tensor& update, const Tensor& compute) {
  ArgumentCheck check("lamb apply", stream);
  check.NotNull("ratio", ratio);
  CheckUpdate(scalars, parameter, {{"update", update}}, compute, check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().lamb_apply(stream, scalars, ratio, parameter, update,
                                     compute);
}

absl::Status SumOfSquares(Stream& stream, const Tensor& x, double* out) {
  ArgumentCheck check("sum of squares", stream);
  check.Vector("x", x, x.elements(), DType::kFloat32);
  check.NotNull("out", out);
  RETURN_IF_ERROR(check.status());
  return stream.backend().sum_of_squares(stream, x, out);
}

}  // namespace lockstep::ops
