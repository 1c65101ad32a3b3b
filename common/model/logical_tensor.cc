#include "common/model/logical_tensor.h"

#include <cmath>
#include <string>
#include <utility>

namespace lockstep {
namespace {

// Standard deviation of initial weights (Radford et al. 2019; HF gpt2).
constexpr double kInitScale = 0.02;

class Describer {
 public:
  explicit Describer(const ModelSpec& spec) : spec_(spec) {}

  std::vector<LogicalTensor> Describe() {
    DescribeEmbedding();
    for (int64_t layer = 0; layer < spec_.layers; ++layer) {
      ++unit_;
      DescribeBlock("blocks." + std::to_string(layer) + ".");
    }
    ++unit_;
    DescribeHead();
    return std::move(tensors_);
  }

 private:
  bool gpt2() const { return spec_.family == v1::MODEL_FAMILY_GPT2; }

  void AddMatrix(const std::string& name, int64_t out, int64_t in,
                 double scale) {
    LogicalTensor tensor;
    tensor.name = name;
    tensor.shape = {out, in};
    tensor.initializer = Initializer::kNormal;
    tensor.init_scale = scale;
    tensor.decay = true;
    tensor.unit = unit_;
    tensors_.push_back(std::move(tensor));
  }

  void AddVector(const std::string& name, int64_t size, Initializer init) {
    LogicalTensor tensor;
    tensor.name = name;
    tensor.shape = {size};
    tensor.initializer = init;
    tensor.unit = unit_;
    tensors_.push_back(std::move(tensor));
  }

  void AddNorm(const std::string& name) {
    AddVector(name + ".weight", spec_.width, Initializer::kOnes);
    if (gpt2()) AddVector(name + ".bias", spec_.width, Initializer::kZeros);
  }

  void DescribeEmbedding() {
    AddMatrix("embedding.tokens.weight", spec_.vocabulary, spec_.width,
              kInitScale);
    if (gpt2()) {
      AddMatrix("embedding.positions.weight", spec_.maximum_positions,
                spec_.width, kInitScale);
    }
  }

  // Matrices first, then vectors: ranges with and without decay stay long.
  void DescribeBlock(const std::string& block) {
    const int64_t width = spec_.width;
    const int64_t q_width = spec_.heads * spec_.head_width;
    const int64_t kv_width = spec_.kv_heads * spec_.head_width;
    const int64_t hidden = spec_.feed_forward_width;
    // Projections into the residual stream start smaller, by the number of
    // them on the path (Radford et al. 2019, section 2.3).
    const double residual_scale =
        kInitScale / std::sqrt(2.0 * static_cast<double>(spec_.layers));
    const std::string attention = block + "attention.";
    const std::string feed_forward = block + "feed_forward.";

    AddMatrix(attention + "q.weight", q_width, width, kInitScale);
    AddMatrix(attention + "k.weight", kv_width, width, kInitScale);
    AddMatrix(attention + "v.weight", kv_width, width, kInitScale);
    AddMatrix(attention + "output.weight", width, q_width, residual_scale);
    if (!gpt2()) {
      AddMatrix(feed_forward + "gate.weight", hidden, width, kInitScale);
    }
    AddMatrix(feed_forward + "up.weight", hidden, width, kInitScale);
    AddMatrix(feed_forward + "down.weight", width, hidden, residual_scale);

    AddNorm(block + "attention_norm");
    if (spec_.attention_bias) {
      AddVector(attention + "q.bias", q_width, Initializer::kZeros);
      AddVector(attention + "k.bias", kv_width, Initializer::kZeros);
      AddVector(attention + "v.bias", kv_width, Initializer::kZeros);
      AddVector(attention + "output.bias", width, Initializer::kZeros);
    }
    AddNorm(block + "feed_forward_norm");
    if (gpt2()) {
      AddVector(feed_forward + "up.bias", hidden, Initializer::kZeros);
      AddVector(feed_forward + "down.bias", width, Initializer::kZeros);
    }
  }

  void DescribeHead() {
    if (spec_.task == v1::TASK_CLASSIFICATION) {
      AddMatrix("classifier.weight", spec_.classes, spec_.width, kInitScale);
      AddVector("classifier.bias", spec_.classes, Initializer::kZeros);
    } else if (!spec_.tied_embeddings) {
      AddMatrix("head.weight", spec_.vocabulary, spec_.width, kInitScale);
    }
    AddNorm("final_norm");
  }

  const ModelSpec& spec_;
  int unit_ = 0;
  std::vector<LogicalTensor> tensors_;
};

}  // namespace

int64_t LogicalTensor::elements() const {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

std::vector<LogicalTensor> DescribeModel(const ModelSpec& spec) {
  return Describer(spec).Describe();
}

int64_t ParameterCount(const ModelSpec& spec) {
  int64_t count = 0;
  for (const LogicalTensor& tensor : DescribeModel(spec)) {
    count += tensor.elements();
  }
  return count;
}

}  // namespace lockstep
