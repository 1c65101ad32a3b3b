#include "kernels/cpu/bf16_matmul.h"

#include <array>
#include <cstdint>
#include <exception>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace lockstep::cpu {
namespace {

// m, n, k, strides of a, b and out, and bits: transposes, accumulate, bias, out
// is bf16.
using Key = std::array<int64_t, 7>;

struct Product {
  dnnl::matmul primitive;
  dnnl::matmul::primitive_desc description;
};

}  // namespace

struct Bf16Matmul::Cache {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  absl::flat_hash_map<Key, Product> products;

  Product& Find(const Key& key);
};

Product& Bf16Matmul::Cache::Find(const Key& key) {
  if (const auto found = products.find(key); found != products.end()) {
    return found->second;
  }
  if (products.size() >= kCapacity) products.clear();
  using Type = dnnl::memory::data_type;
  using Dims = dnnl::memory::dims;
  const auto [m, n, k, a_stride, b_stride, out_stride, bits] = key;
  const auto matrix = [](int64_t rows, int64_t cols, Type type, int64_t stride,
                         bool transposed) {
    return dnnl::memory::desc({rows, cols}, type,
                              transposed ? Dims{1, stride} : Dims{stride, 1});
  };
  const auto a = matrix(m, k, Type::bf16, a_stride, (bits & 1) != 0);
  const auto b = matrix(k, n, Type::bf16, b_stride, (bits & 2) != 0);
  const auto out = matrix(m, n, (bits & 16) != 0 ? Type::bf16 : Type::f32,
                          out_stride, false);
  const auto bias = matrix(1, n, Type::f32, n, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if ((bits & 4) != 0) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const auto operation = (bits & 8) != 0 ? dnnl::matmul::desc(a, b, bias, out)
                                         : dnnl::matmul::desc(a, b, out);
  const dnnl::matmul::primitive_desc description(operation, attributes, engine);
  return products.emplace(key, Product{dnnl::matmul(description), description})
      .first->second;
}

Bf16Matmul::Bf16Matmul() = default;
Bf16Matmul::~Bf16Matmul() = default;

absl::Status Bf16Matmul::Run(Stream& stream, const Tensor& a,
                             Transpose transpose_a, const Tensor& b,
                             Transpose transpose_b, const Tensor& bias,
                             Accumulate accumulate, const Tensor& out) {
  const int64_t m = out.rows();
  const int64_t n = out.cols();
  const int64_t k = transpose_a == Transpose::kYes ? a.rows() : a.cols();
  const int64_t bits = (transpose_a == Transpose::kYes ? 1 : 0) |
                       (transpose_b == Transpose::kYes ? 2 : 0) |
                       (accumulate == Accumulate::kYes ? 4 : 0) |
                       (bias.empty() ? 0 : 8) |
                       (out.dtype() == DType::kBFloat16 ? 16 : 0);
  const auto failed = [&](const char* what) {
    return absl::InternalError(absl::StrCat(
        "oneDNN's bf16 product of ", m, " x ", n, " x ", k, " failed: ", what));
  };
  try {
    if (cache_ == nullptr) cache_ = std::make_unique<Cache>();
    Product& product = cache_->Find(
        {m, n, k, a.row_stride(), b.row_stride(), out.row_stride(), bits});
    const auto scratchpad = product.description.scratchpad_desc();
    ASSIGN_OR_RETURN(Buffer scratch,
                     stream.allocator().Allocate(scratchpad.get_size(),
                                                 MemoryCategory::kBuffer));
    const auto memory = [&](const dnnl::memory::desc& description, void* data) {
      return dnnl::memory(description, cache_->engine, data);
    };
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, memory(product.description.src_desc(), a.raw())},
        {DNNL_ARG_WEIGHTS, memory(product.description.weights_desc(), b.raw())},
        {DNNL_ARG_DST, memory(product.description.dst_desc(), out.raw())},
        {DNNL_ARG_SCRATCHPAD, memory(scratchpad, scratch.data())},
    };
    if (!bias.empty()) {
      arguments.emplace(DNNL_ARG_BIAS,
                        memory(product.description.bias_desc(), bias.raw()));
    }
    product.primitive.execute(cache_->stream, arguments);
    cache_->stream.wait();
  } catch (const std::exception& error) {
    return failed(error.what());
  }
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
