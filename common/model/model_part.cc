#include "common/model/model_part.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// Standard deviation of initial weights (Radford et al. 2019; HF gpt2).
constexpr double kInitScale = 0.02;

constexpr char kTokenEmbedding[] = "embedding.tokens.weight";

// Which dim is cut, and where this rank's part of it lies.
struct Split {
  int dim = 0;
  Portion portion;
};
using MaybeSplit = std::optional<Split>;

class Describer {
 public:
  explicit Describer(const ModelPart& part) : part_(part), spec_(part.whole) {}

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

  LogicalTensor& Add(const std::string& name, std::vector<int64_t> shape,
                     const MaybeSplit& split) {
    LogicalTensor& tensor = tensors_.emplace_back();
    tensor.name = name;
    tensor.index = static_cast<int>(tensors_.size()) - 1;
    tensor.shape = std::move(shape);
    tensor.held_shape = tensor.shape;
    tensor.unit = unit_;
    if (split.has_value()) {
      tensor.held_shape[split->dim] = split->portion.size();
      tensor.split_dim = split->dim;
      tensor.split_begin = split->portion.begin;
    } else {
      tensor.counted = part_.place.rank == 0;
    }
    return tensor;
  }

  void AddMatrix(const std::string& name, int64_t out, int64_t in, double scale,
                 const MaybeSplit& split) {
    LogicalTensor& tensor = Add(name, {out, in}, split);
    tensor.initializer = Initializer::kNormal;
    tensor.init_scale = scale;
    tensor.decay = true;
  }

  void AddBias(const std::string& name, int64_t size, const MaybeSplit& split) {
    Add(name, {size}, split);
  }

  void AddNorm(const std::string& name) {
    LogicalTensor& weight = Add(name + ".weight", {spec_.width}, std::nullopt);
    weight.initializer = Initializer::kOnes;
    weight.summed_over_tp = SumsNorms();
    if (gpt2()) {
      Add(name + ".bias", {spec_.width}, std::nullopt).summed_over_tp =
          SumsNorms();
    }
  }
  bool SumsNorms() const {
    return part_.place.sequence_parallel && part_.place.ranks > 1;
  }

  // This rank's heads, key heads, feed-forward width and ids.
  Portion Heads() const {
    const int64_t width = spec_.head_width;
    return {part_.first_head * width,
            (part_.first_head + part_.local.heads) * width};
  }
  Portion KvHeads() const {
    const int64_t width = spec_.head_width;
    return {part_.first_kv_head * width,
            (part_.first_kv_head + part_.local.kv_heads) * width};
  }
  Portion Hidden() const {
    return {part_.first_hidden,
            part_.first_hidden + part_.local.feed_forward_width};
  }
  Portion Ids() const {
    return {part_.first_id, part_.first_id + part_.local.vocabulary};
  }

  void DescribeEmbedding() {
    AddMatrix(kTokenEmbedding, spec_.vocabulary, spec_.width, kInitScale,
              Split{0, Ids()});
    if (gpt2()) {
      AddMatrix("embedding.positions.weight", spec_.maximum_positions,
                spec_.width, kInitScale, std::nullopt);
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

    AddMatrix(attention + "q.weight", q_width, width, kInitScale,
              Split{0, Heads()});
    AddMatrix(attention + "k.weight", kv_width, width, kInitScale,
              Split{0, KvHeads()});
    AddMatrix(attention + "v.weight", kv_width, width, kInitScale,
              Split{0, KvHeads()});
    AddMatrix(attention + "output.weight", width, q_width, residual_scale,
              Split{1, Heads()});
    if (!gpt2()) {
      AddMatrix(feed_forward + "gate.weight", hidden, width, kInitScale,
                Split{0, Hidden()});
    }
    AddMatrix(feed_forward + "up.weight", hidden, width, kInitScale,
              Split{0, Hidden()});
    AddMatrix(feed_forward + "down.weight", width, hidden, residual_scale,
              Split{1, Hidden()});

    // Norms side by side: their gradients may be summed over ranks as one.
    AddNorm(block + "attention_norm");
    AddNorm(block + "feed_forward_norm");
    if (spec_.attention_bias) {
      AddBias(attention + "q.bias", q_width, Split{0, Heads()});
      AddBias(attention + "k.bias", kv_width, Split{0, KvHeads()});
      AddBias(attention + "v.bias", kv_width, Split{0, KvHeads()});
      AddBias(attention + "output.bias", width, std::nullopt);
    }
    if (gpt2()) {
      AddBias(feed_forward + "up.bias", hidden, Split{0, Hidden()});
      AddBias(feed_forward + "down.bias", width, std::nullopt);
    }
  }

  void DescribeHead() {
    if (spec_.task == v1::TASK_CLASSIFICATION) {
      AddMatrix("classifier.weight", spec_.classes, spec_.width, kInitScale,
                std::nullopt);
      AddNorm("final_norm");
      AddBias("classifier.bias", spec_.classes, std::nullopt);
      return;
    }
    if (!spec_.tied_embeddings) {
      AddMatrix("head.weight", spec_.vocabulary, spec_.width, kInitScale,
                Split{0, Ids()});
    }
    AddNorm("final_norm");
  }

  const ModelPart& part_;
  const ModelSpec& spec_;
  int unit_ = 0;
  std::vector<LogicalTensor> tensors_;
};

}  // namespace

absl::Status CheckTensorParallel(const ModelSpec& model, int64_t ranks) {
  const auto check = [&](const char* key, int64_t parts, const char* what) {
    if (ranks <= parts) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("parallel.tp is ", ranks, ", but ", key, " is ", parts,
                     ": ", what, "; at most ", parts, " would do"));
  };
  absl::Status status =
      check(model.kv_heads == model.heads ? "model.heads" : "model.kv_heads",
            model.kv_heads, "each rank takes whole heads, key heads included");
  status.Update(check("model.feed_forward_width", model.feed_forward_width,
                      "each rank takes a part of it"));
  status.Update(check("the vocabulary", model.vocabulary,
                      "each rank takes a part of its ids"));
  return status;
}

absl::Status CheckContextParallel(const ModelSpec& model,
                                  const v1::Layout& layout) {
  const int64_t cp = layout.cp();
  if (cp <= 1) return absl::OkStatus();
  if (model.task == v1::TASK_CLASSIFICATION) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallel.cp is ", cp,
        ", but the task is classification: cp cuts the "
        "long sequences of language models; dp or fsdp cut the batch"));
  }
  if (layout.cp_kind() != v1::CONTEXT_PARALLEL_KIND_ULYSSES) {
    return absl::OkStatus();
  }
  // A rank of tensor parallelism has at least so many key heads to give away.
  const int64_t heads = model.kv_heads / layout.tp();
  if (cp <= heads) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "parallel.cp is ", cp,
      " of kind ulysses, which gives each rank whole key "
      "heads, but there are ",
      heads, layout.tp() > 1 ? " for each rank of parallel.tp" : "",
      " (model.kv_heads); at most ", heads, " would do, or cp_kind ring"));
}

bool ModelPart::Holds(int64_t unit) const {
  return std::any_of(chunks.begin(), chunks.end(), [&](const Portion& chunk) {
    return chunk.Contains(unit);
  });
}

ModelPart PartOf(const ModelSpec& model, const TensorPlace& place,
                 std::vector<Portion> chunks) {
  ModelPart part;
  part.chunks = std::move(chunks);
  if (part.chunks.empty()) part.chunks = {{0, model.layers + 2}};
  part.whole = model;
  part.local = model;
  part.place = place;
  const auto portion = [&](int64_t extent) {
    return PortionOf(extent, place.rank, place.ranks);
  };
  const Portion kv_heads = portion(model.kv_heads);
  const Portion hidden = portion(model.feed_forward_width);
  const Portion ids = portion(model.vocabulary);
  const int64_t group = model.heads / model.kv_heads;
  part.first_kv_head = kv_heads.begin;
  part.first_head = kv_heads.begin * group;
  part.first_hidden = hidden.begin;
  part.first_id = ids.begin;
  part.local.kv_heads = kv_heads.size();
  part.local.heads = kv_heads.size() * group;
  part.local.feed_forward_width = hidden.size();
  part.local.vocabulary = ids.size();
  return part;
}

std::vector<LogicalTensor> DescribePart(const ModelPart& part) {
  const int64_t head = part.whole.layers + 1;
  std::vector<LogicalTensor> held, copies;
  for (LogicalTensor& tensor : Describer(part).Describe()) {
    const bool embedding = tensor.name == kTokenEmbedding;
    if (embedding && part.tied()) {
      tensor.on_two_stages = !part.Holds(0) || !part.Holds(head);
      if (!part.Holds(0) && part.Holds(head)) {
        tensor.unit = static_cast<int>(head);
        tensor.counted = false;
        copies.push_back(std::move(tensor));
        continue;
      }
    }
    if (!part.Holds(tensor.unit)) continue;
    // The head's matrices come first in its unit.
    if (tensor.unit == head) {
      held.insert(held.end(), copies.begin(), copies.end());
      copies.clear();
    }
    held.push_back(std::move(tensor));
  }
  return held;
}

std::vector<LogicalTensor> DescribeModel(const ModelSpec& spec) {
  return DescribePart(PartOf(spec));
}

int64_t ParameterCount(const ModelSpec& spec) {
  int64_t count = 0;
  for (const LogicalTensor& tensor : DescribeModel(spec)) {
    count += tensor.elements();
  }
  return count;
}

}  // namespace lockstep
