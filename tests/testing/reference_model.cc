#include "tests/testing/reference_model.h"

#include <cmath>
#include <numbers>

namespace lockstep {
namespace {

using Vector = std::vector<double>;

class Reference {
 public:
  Reference(const ModelSpec& spec, const ReferenceParameters& parameters,
            const MicroBatch& batch)
      : spec_(spec), parameters_(parameters), batch_(batch) {}

  double MeanLoss() {
    std::vector<Vector> rows = Embed();
    for (int64_t layer = 0; layer < spec_.layers; ++layer) {
      const std::string prefix = "blocks." + std::to_string(layer) + ".";
      AddAttention(prefix, rows);
      AddFeedForward(prefix, rows);
    }
    for (Vector& row : rows) row = Norm("final_norm", row);
    return spec_.task == v1::TASK_CLASSIFICATION ? ClassificationLoss(rows)
                                                 : LanguageModelLoss(rows);
  }

 private:
  bool gpt2() const { return spec_.family == v1::MODEL_FAMILY_GPT2; }
  const Vector& P(const std::string& name) const {
    return parameters_.at(name);
  }
  double BiasAt(const std::string& name, int64_t i) const {
    const auto it = parameters_.find(name);
    return it == parameters_.end() ? 0.0 : it->second[i];
  }

  Vector Multiply(const std::string& name, const Vector& x, int64_t out) const {
    const Vector& weight = P(name + ".weight");
    Vector y(out);
    for (int64_t i = 0; i < out; ++i) {
      y[i] = BiasAt(name + ".bias", i);
      for (size_t j = 0; j < x.size(); ++j)
        y[i] += weight[i * x.size() + j] * x[j];
    }
    return y;
  }

  Vector Norm(const std::string& name, const Vector& x) const {
    const double n = static_cast<double>(x.size());
    double mean = 0.0, square = 0.0;
    if (gpt2()) {
      for (double value : x) mean += value / n;
    }
    for (double value : x) square += (value - mean) * (value - mean) / n;
    const double scale = 1.0 / std::sqrt(square + spec_.norm_epsilon);
    Vector y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) * scale * P(name + ".weight")[i] +
             BiasAt(name + ".bias", i);
    }
    return y;
  }

  std::vector<Vector> Embed() const {
    std::vector<Vector> rows;
    for (size_t n = 0; n < batch_.tokens.size(); ++n) {
      Vector row(spec_.width);
      for (int64_t c = 0; c < spec_.width; ++c) {
        row[c] =
            P("embedding.tokens.weight")[batch_.tokens[n] * spec_.width + c];
        if (gpt2()) {
          row[c] += P(
              "embedding.positions.weight")[batch_.positions[n] * spec_.width +
                                            c];
        }
      }
      rows.push_back(row);
    }
    return rows;
  }

  void Rotate(Vector& x, int64_t heads, int32_t position) const {
    if (gpt2()) return;
    const int64_t d = spec_.head_width;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < d / 2; ++i) {
        const double angle =
            position * std::pow(spec_.rope_theta, -2.0 * i / d);
        double& a = x[h * d + i];
        double& b = x[h * d + i + d / 2];
        const double rotated = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = rotated;
      }
    }
  }

  void AddAttention(const std::string& prefix,
                    std::vector<Vector>& rows) const {
    const int64_t d = spec_.head_width;
    std::vector<Vector> q, k, v;
    for (size_t n = 0; n < rows.size(); ++n) {
      const Vector x = Norm(prefix + "attention_norm", rows[n]);
      q.push_back(Multiply(prefix + "attention.q", x, spec_.heads * d));
      k.push_back(Multiply(prefix + "attention.k", x, spec_.kv_heads * d));
      v.push_back(Multiply(prefix + "attention.v", x, spec_.kv_heads * d));
      Rotate(q.back(), spec_.heads, batch_.positions[n]);
      Rotate(k.back(), spec_.kv_heads, batch_.positions[n]);
    }
    for (size_t s = 0; s + 1 < batch_.segment_bounds.size(); ++s) {
      for (int32_t n = batch_.segment_bounds[s];
           n < batch_.segment_bounds[s + 1]; ++n) {
        Vector mixed(spec_.heads * d);
        for (int64_t h = 0; h < spec_.heads; ++h) {
          const int64_t kv = h / (spec_.heads / spec_.kv_heads);
          Vector weights;
          double total = 0.0;
          for (int32_t m = batch_.segment_bounds[s]; m <= n; ++m) {
            double score = 0.0;
            for (int64_t i = 0; i < d; ++i) {
              score += q[n][h * d + i] * k[m][kv * d + i];
            }
            weights.push_back(std::exp(score / std::sqrt(1.0 * d)));
            total += weights.back();
          }
          for (size_t m = 0; m < weights.size(); ++m) {
            const Vector& value = v[batch_.segment_bounds[s] + m];
            for (int64_t i = 0; i < d; ++i) {
              mixed[h * d + i] += weights[m] / total * value[kv * d + i];
            }
          }
        }
        const Vector y =
            Multiply(prefix + "attention.output", mixed, spec_.width);
        for (int64_t c = 0; c < spec_.width; ++c) rows[n][c] += y[c];
      }
    }
  }

  void AddFeedForward(const std::string& prefix,
                      std::vector<Vector>& rows) const {
    for (Vector& row : rows) {
      const Vector x = Norm(prefix + "feed_forward_norm", row);
      Vector hidden =
          Multiply(prefix + "feed_forward.up", x, spec_.feed_forward_width);
      if (gpt2()) {
        for (double& u : hidden) {
          u = 0.5 * u *
              (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) *
                               (u + 0.044715 * u * u * u)));
        }
      } else {
        const Vector gate =
            Multiply(prefix + "feed_forward.gate", x, spec_.feed_forward_width);
        for (size_t i = 0; i < hidden.size(); ++i) {
          hidden[i] *= gate[i] / (1.0 + std::exp(-gate[i]));
        }
      }
      const Vector y =
          Multiply(prefix + "feed_forward.down", hidden, spec_.width);
      for (int64_t c = 0; c < spec_.width; ++c) row[c] += y[c];
    }
  }

  static double CrossEntropy(const Vector& logits, int32_t target) {
    double total = 0.0;
    for (double logit : logits) total += std::exp(logit);
    return std::log(total) - logits[target];
  }

  double LanguageModelLoss(const std::vector<Vector>& rows) const {
    const Vector& weight =
        P(spec_.tied_embeddings ? "embedding.tokens.weight" : "head.weight");
    double sum = 0.0, count = 0.0;
    for (size_t n = 0; n < rows.size(); ++n) {
      if (batch_.targets[n] < 0) continue;
      Vector logits(spec_.vocabulary);
      for (int64_t token = 0; token < spec_.vocabulary; ++token) {
        for (int64_t c = 0; c < spec_.width; ++c) {
          logits[token] += weight[token * spec_.width + c] * rows[n][c];
        }
      }
      sum += CrossEntropy(logits, batch_.targets[n]);
      count += 1.0;
    }
    return sum / count;
  }

  double ClassificationLoss(const std::vector<Vector>& rows) const {
    double sum = 0.0;
    for (size_t s = 0; s + 1 < batch_.sample_bounds.size(); ++s) {
      const int32_t begin = batch_.sample_bounds[s];
      const int32_t end = batch_.sample_bounds[s + 1];
      Vector pooled(spec_.width);
      for (int32_t n = begin; n < end; ++n) {
        for (int64_t c = 0; c < spec_.width; ++c) {
          pooled[c] += rows[n][c] / (end - begin);
        }
      }
      sum += CrossEntropy(Multiply("classifier", pooled, spec_.classes),
                          batch_.targets[s]);
    }
    return sum / static_cast<double>(batch_.sample_bounds.size() - 1);
  }

  const ModelSpec& spec_;
  const ReferenceParameters& parameters_;
  const MicroBatch& batch_;
};

}  // namespace

double ReferenceLoss(const ModelSpec& spec,
                     const ReferenceParameters& parameters,
                     const MicroBatch& batch) {
  return Reference(spec, parameters, batch).MeanLoss();
}

double ReferenceGradient(const ModelSpec& spec, ReferenceParameters parameters,
                         const MicroBatch& batch, const std::string& name,
                         size_t element, double h) {
  double& value = parameters.at(name)[element];
  const double center = value;
  value = center + h;
  const double above = ReferenceLoss(spec, parameters, batch);
  value = center - h;
  const double below = ReferenceLoss(spec, parameters, batch);
  return (above - below) / (2.0 * h);
}

}  // namespace lockstep
