#include "tests/bench/matmul_peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

enum class Operands { kPlain, kPadded, kBlocked };

const char* NameOf(Operands operands) {
  switch (operands) {
    case Operands::kPlain:
      return "plain";
    case Operands::kPadded:
      return "padded";
    case Operands::kBlocked:
      return "blocked";
  }
  return "";
}

dnnl::memory::desc Describe(int64_t rows, int64_t cols,
                            dnnl::memory::data_type type, Operands operands) {
  if (operands == Operands::kBlocked) {
    return {{rows, cols}, type, dnnl::memory::format_tag::any};
  }
  const int64_t stride = operands == Operands::kPadded ? cols + 16 : cols;
  return {{rows, cols}, type, dnnl::memory::dims{stride, 1}};
}

// Best FLOP/s of (m x k) (k x n) in `seconds`.
double RateOf(dnnl::engine& engine, dnnl::stream& stream, int64_t m, int64_t k,
              int64_t n, dnnl::memory::data_type type, Operands operands,
              double seconds) {
  const dnnl::matmul::primitive_desc description(
      {Describe(m, k, type, operands), Describe(k, n, type, operands),
       Describe(m, n, type, operands)},
      engine);
  dnnl::memory a(description.src_desc(), engine);
  dnnl::memory b(description.weights_desc(), engine);
  dnnl::memory c(description.dst_desc(), engine);
  // Ones and a half: normal numbers in every dtype.
  for (dnnl::memory* memory : {&a, &b, &c}) {
    std::memset(memory->get_data_handle(), 0x3f, memory->get_desc().get_size());
  }
  dnnl::matmul matmul(description);
  double best = 1e30;
  const Clock::time_point begin = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    matmul.execute(
        stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
    best = std::min(
        best, std::chrono::duration<double>(Clock::now() - start).count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() <
           seconds);
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(k) / best;
}

}  // namespace

std::vector<MatmulRate> MeasureMatmulRates(DType dtype, double seconds) {
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::data_type type = dtype == DType::kBFloat16
                                           ? dnnl::memory::data_type::bf16
                                           : dnnl::memory::data_type::f32;
  // Square, then the products of GPT-2 124M at 2,048 tokens.
  const int64_t shapes[][3] = {{1024, 1024, 1024}, {2048, 2048, 2048},
                               {3072, 3072, 3072}, {2048, 768, 2304},
                               {2048, 768, 3072},  {2048, 3072, 768}};
  std::vector<MatmulRate> rates;
  for (const auto& [m, k, n] : shapes) {
    for (const Operands operands :
         {Operands::kPlain, Operands::kPadded, Operands::kBlocked}) {
      try {
        rates.push_back(
            {std::to_string(m) + " x " + std::to_string(k) + " x " +
                 std::to_string(n) + " " + NameOf(operands),
             RateOf(engine, stream, m, k, n, type, operands, seconds)});
      } catch (const dnnl::error&) {
        // No such product on this machine: bf16 below AVX-512, say.
      }
    }
  }
  return rates;
}

}  // namespace lockstep
