// Rates of the CPU kernels on the shapes of GPT-2 124M (batch 4, sequence 512).
// Not a test: run by hand, with the usual flags of Google Benchmark.
//   kernels_benchmark --benchmark_filter=Attention
// LOCKSTEP_THREADS is the number of threads (2). Rates are in FLOP/s or
// bytes/s; for products, "peak" beside them is a square fp32 product measured
// before.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/log.h"
#include "kernels/device.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/norm.h"
#include "kernels/ops/optimizer.h"
#include "kernels/owned_tensor.h"

namespace lockstep {
namespace {

constexpr int64_t kTokens = 2048;

Device& TheDevice() {
  static const std::unique_ptr<Device> device = [] {
    const char* threads = std::getenv("LOCKSTEP_THREADS");
    auto made = MakeCpuDevice({.threads = threads ? std::atoi(threads) : 2,
                               .cpu_level = DetectCpuLevel()});
    CHECK(made.ok()) << made.status().ToString();
    return *std::move(made);
  }();
  return *device;
}

void Must(const absl::Status& status) {
  CHECK(status.ok()) << status.ToString();
}

OwnedTensor Make(Shape shape, DType dtype,
                 RowPadding padding = RowPadding::kPadded) {
  auto tensor = AllocateTensor(TheDevice().stream(), dtype, shape,
                               MemoryCategory::kActivation, padding);
  CHECK(tensor.ok()) << tensor.status().ToString();
  if (dtype == DType::kFloat32 || dtype == DType::kBFloat16) {
    Must(ops::Fill(TheDevice().stream(), 0.01f, *tensor));
  } else {
    Must(ops::Zero(TheDevice().stream(), *tensor));
  }
  return *std::move(tensor);
}

void ReportFlops(benchmark::State& state, double flops) {
  state.counters["flops"] =
      benchmark::Counter(flops * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
void ReportBytes(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

DType TypeOf(const benchmark::State& state) {
  return state.range(0) == 0 ? DType::kFloat32 : DType::kBFloat16;
}

// The three products of a linear layer (out, in) on kTokens rows.
enum class Pass { kForward, kInputGradient, kWeightGradient };

void Linear(benchmark::State& state, Pass pass) {
  Stream& stream = TheDevice().stream();
  const DType dtype = TypeOf(state);
  const int64_t in = state.range(1), out = state.range(2);
  OwnedTensor x = Make({kTokens, in}, dtype);
  OwnedTensor y = Make({kTokens, out}, dtype);
  OwnedTensor w = Make({out, in}, dtype, RowPadding::kDense);
  OwnedTensor dw = Make({out, in}, DType::kFloat32, RowPadding::kDense);
  OwnedTensor bias = Make({out}, DType::kFloat32, RowPadding::kDense);
  for (auto _ : state) {
    switch (pass) {
      case Pass::kForward:
        Must(ops::Matmul(stream, x, Transpose::kNo, w, Transpose::kYes, bias,
                         Accumulate::kNo, y));
        break;
      case Pass::kInputGradient:
        Must(ops::Matmul(stream, y, Transpose::kNo, w, Transpose::kNo, Tensor(),
                         Accumulate::kNo, x));
        break;
      case Pass::kWeightGradient:
        Must(ops::Matmul(stream, y, Transpose::kYes, x, Transpose::kNo,
                         Tensor(), Accumulate::kYes, dw));
        break;
    }
  }
  ReportFlops(state, 2.0 * kTokens * in * out);
}

void LinearShapes(benchmark::internal::Benchmark* benchmark) {
  for (int64_t dtype : {0, 1}) {
    for (const auto& [in, out] :
         std::vector<std::pair<int64_t, int64_t>>{{768, 2304},
                                                  {768, 768},
                                                  {768, 3072},
                                                  {3072, 768},
                                                  {768, 12576},
                                                  {256, 768},
                                                  {688, 256}}) {
      benchmark->Args({dtype, in, out});
    }
  }
  benchmark->ArgNames({"bf16", "in", "out"})->UseRealTime();
}
BENCHMARK_CAPTURE(Linear, forward, Pass::kForward)->Apply(LinearShapes);
BENCHMARK_CAPTURE(Linear, input_gradient, Pass::kInputGradient)
    ->Apply(LinearShapes);
BENCHMARK_CAPTURE(Linear, weight_gradient, Pass::kWeightGradient)
    ->Apply(LinearShapes);

struct AttentionProblem {
  AttentionShape shape;
  OwnedTensor bounds, qkv, out, lse, dqkv;
  StepScalars scalars;
  OwnedTensor sample, position;

  AttentionProblem(DType dtype, int64_t heads, int64_t width, int64_t length,
                   float dropout) {
    const int64_t model = heads * width, segments = kTokens / length;
    bounds = Make({segments + 1}, DType::kInt32, RowPadding::kDense);
    for (int64_t s = 0; s <= segments; ++s) {
      bounds->data<int32_t>()[s] = static_cast<int32_t>(s * length);
    }
    qkv = Make({kTokens, 3 * model}, dtype);
    dqkv = Make({kTokens, 3 * model}, dtype);
    out = Make({kTokens, model}, dtype);
    lse = Make({heads, kTokens}, DType::kFloat32);
    sample = Make({kTokens}, DType::kUInt32, RowPadding::kDense);
    position = Make({kTokens}, DType::kInt32, RowPadding::kDense);
    shape.heads = shape.kv_heads = heads;
    shape.head_width = width;
    shape.softmax_scale = 0.125f;
    shape.query_bounds = shape.key_bounds = bounds;
    shape.max_query_rows = shape.max_key_rows = length;
    if (dropout > 0.0f) {
      shape.dropout = {dropout, 1, &scalars, {sample, position}};
    }
  }
};

// FLOPs of the score entries that a causal mask leaves: two products of width
// D forward, five backward.
double CausalFlops(int64_t heads, int64_t width, int64_t length,
                   double products) {
  return products * 2.0 * kTokens * heads * width * (length + 1) / 2.0;
}

void AttentionForward(benchmark::State& state) {
  const int64_t heads = state.range(1), width = state.range(2);
  const int64_t length = state.range(3);
  AttentionProblem p(TypeOf(state), heads, width, length,
                     state.range(4) / 100.0f);
  const int64_t model = heads * width;
  for (auto _ : state) {
    Must(ops::AttentionForward(TheDevice().stream(), p.shape,
                               p.qkv->Columns(0, model),
                               p.qkv->Columns(model, model),
                               p.qkv->Columns(2 * model, model), p.out, p.lse));
  }
  ReportFlops(state, CausalFlops(heads, width, length, 2));
}

void AttentionBackward(benchmark::State& state) {
  const int64_t heads = state.range(1), width = state.range(2);
  const int64_t length = state.range(3);
  AttentionProblem p(TypeOf(state), heads, width, length,
                     state.range(4) / 100.0f);
  const int64_t model = heads * width;
  const Tensor q = p.qkv->Columns(0, model), k = p.qkv->Columns(model, model),
               v = p.qkv->Columns(2 * model, model);
  Stream& stream = TheDevice().stream();
  Must(ops::AttentionForward(stream, p.shape, q, k, v, p.out, p.lse));
  for (auto _ : state) {
    Must(ops::AttentionBackward(stream, p.shape, p.out, q, k, v, p.out, p.lse,
                                p.dqkv->Columns(0, model),
                                p.dqkv->Columns(model, model),
                                p.dqkv->Columns(2 * model, model)));
  }
  ReportFlops(state, CausalFlops(heads, width, length, 5));
}

void AttentionShapes(benchmark::internal::Benchmark* benchmark) {
  for (int64_t dtype : {0, 1}) {
    benchmark->Args({dtype, 12, 64, 512, 0})->Args({dtype, 12, 64, 512, 10});
  }
  benchmark->Args({0, 4, 64, 128, 0})
      ->Args({0, 8, 32, 32, 0})
      ->Args({0, 16, 128, 2048, 0})
      ->ArgNames({"bf16", "heads", "width", "length", "dropout"})
      ->UseRealTime();
}
BENCHMARK(AttentionForward)->Apply(AttentionShapes);
BENCHMARK(AttentionBackward)->Apply(AttentionShapes);

void LayerNormForward(benchmark::State& state) {
  const DType dtype = TypeOf(state);
  const int64_t cols = state.range(1);
  OwnedTensor x = Make({kTokens, cols}, dtype),
              out = Make({kTokens, cols}, dtype);
  OwnedTensor w = Make({cols}, DType::kFloat32, RowPadding::kDense);
  OwnedTensor mean = Make({kTokens}, DType::kFloat32, RowPadding::kDense);
  OwnedTensor rstd = Make({kTokens}, DType::kFloat32, RowPadding::kDense);
  const Norm norm = {NormKind::kLayerNorm, 1e-5f, w, w};
  for (auto _ : state) {
    Must(ops::NormForward(TheDevice().stream(), norm, x, out, mean, rstd));
  }
  ReportBytes(state, 2 * x->bytes());
}
BENCHMARK(LayerNormForward)->Args({0, 768})->Args({1, 768})->UseRealTime();

void LayerNormBackward(benchmark::State& state) {
  const DType dtype = TypeOf(state);
  const int64_t cols = state.range(1);
  OwnedTensor x = Make({kTokens, cols}, dtype),
              dout = Make({kTokens, cols}, dtype);
  OwnedTensor dx = Make({kTokens, cols}, dtype);
  OwnedTensor w = Make({cols}, DType::kFloat32, RowPadding::kDense);
  OwnedTensor dw = Make({cols}, DType::kFloat32, RowPadding::kDense);
  OwnedTensor mean = Make({kTokens}, DType::kFloat32, RowPadding::kDense);
  OwnedTensor rstd = Make({kTokens}, DType::kFloat32, RowPadding::kDense);
  const Norm norm = {NormKind::kLayerNorm, 1e-5f, w, w};
  for (auto _ : state) {
    Must(ops::NormBackward(TheDevice().stream(), norm, dout, x, mean, rstd, dx,
                           dx, dw, dw));
  }
  ReportBytes(state, 4 * x->bytes());
}
BENCHMARK(LayerNormBackward)->Args({0, 768})->Args({1, 768})->UseRealTime();

void GeluForward(benchmark::State& state) {
  const DType dtype = TypeOf(state);
  OwnedTensor x = Make({kTokens, 3072}, dtype),
              y = Make({kTokens, 3072}, dtype);
  for (auto _ : state) Must(ops::GeluForward(TheDevice().stream(), x, y));
  ReportBytes(state, 2 * x->bytes());
}
BENCHMARK(GeluForward)->Arg(0)->Arg(1)->UseRealTime();

void GeluBackward(benchmark::State& state) {
  const DType dtype = TypeOf(state);
  OwnedTensor x = Make({kTokens, 3072}, dtype),
              y = Make({kTokens, 3072}, dtype);
  for (auto _ : state) Must(ops::GeluBackward(TheDevice().stream(), y, x, y));
  ReportBytes(state, 3 * x->bytes());
}
BENCHMARK(GeluBackward)->Arg(0)->Arg(1)->UseRealTime();

void CrossEntropyInPlace(benchmark::State& state) {
  const DType dtype = TypeOf(state);
  OwnedTensor logits = Make({256, 50304}, dtype);
  OwnedTensor target = Make({256}, DType::kInt32, RowPadding::kDense);
  OwnedTensor loss = Make({256}, DType::kFloat32, RowPadding::kDense);
  const StepScalars scalars = {.inverse_valid_tokens = 1.0f};
  for (auto _ : state) {
    Must(ops::CrossEntropy(TheDevice().stream(), logits, target, &scalars,
                           LogitsGradient::kInPlace, loss, Tensor()));
  }
  ReportBytes(state, 2 * logits->bytes());
}
BENCHMARK(CrossEntropyInPlace)->Arg(0)->Arg(1)->UseRealTime();

void AdamW(benchmark::State& state) {
  const int64_t n = int64_t{1} << 24;
  const auto vector = [&] {
    return Make({n}, DType::kFloat32, RowPadding::kDense);
  };
  OwnedTensor p = vector(), g = vector(), m = vector(), v = vector();
  const StepScalars scalars = {.learning_rate = 1e-3f};
  for (auto _ : state) {
    Must(ops::AdamW(TheDevice().stream(), {}, &scalars, p, g, m, v, Tensor()));
  }
  ReportBytes(state, 7 * p->bytes());
}
BENCHMARK(AdamW)->UseRealTime();

void SumOfSquares(benchmark::State& state) {
  const int64_t n = int64_t{1} << 24;
  OwnedTensor x = Make({n}, DType::kFloat32, RowPadding::kDense);
  double sum = 0.0;
  for (auto _ : state) {
    Must(ops::SumOfSquares(TheDevice().stream(), x, &sum));
  }
  ReportBytes(state, x->bytes());
}
BENCHMARK(SumOfSquares)->UseRealTime();

void Dropout(benchmark::State& state) {
  const DType dtype = TypeOf(state);
  OwnedTensor x = Make({kTokens, 768}, dtype);
  OwnedTensor sample = Make({kTokens}, DType::kUInt32, RowPadding::kDense);
  OwnedTensor position = Make({kTokens}, DType::kInt32, RowPadding::kDense);
  const StepScalars scalars;
  const lockstep::Dropout dropout = {0.1f, 1, &scalars, {sample, position}};
  for (auto _ : state) {
    Must(ops::Dropout(TheDevice().stream(), x, dropout, 0, x));
  }
  ReportBytes(state, 2 * x->bytes());
}
BENCHMARK(Dropout)->Arg(0)->Arg(1)->UseRealTime();

// Best of several square products, as what the others are held against.
double SquarePeak() {
  double best = 0.0;
  for (int64_t n : {768, 1024, 1536}) {
    OwnedTensor a = Make({n, n}, DType::kFloat32);
    OwnedTensor b = Make({n, n}, DType::kFloat32);
    OwnedTensor c = Make({n, n}, DType::kFloat32);
    for (int i = 0; i < 20; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      Must(ops::Matmul(TheDevice().stream(), a, Transpose::kNo, b,
                       Transpose::kNo, Tensor(), Accumulate::kNo, c));
      const std::chrono::duration<double> seconds =
          std::chrono::steady_clock::now() - begin;
      best = std::max(best, 2.0 * n * n * n / seconds.count());
    }
  }
  return best;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::cerr << "peak of square fp32 products: " << lockstep::SquarePeak() / 1e9
            << " GFLOP/s\n";
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
