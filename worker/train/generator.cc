#include "worker/train/generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "kernels/ops/copy.h"

namespace lockstep {
namespace {

constexpr int64_t kDefaultMaxTokens = 100;
constexpr double kDefaultTemperature = 0.8;
constexpr int64_t kDefaultTopK = 40;

// One sample of the last `length` tokens.
MicroBatch LastTokens(const std::vector<int32_t>& tokens, int64_t length) {
  MicroBatch batch;
  const int64_t size = static_cast<int64_t>(tokens.size());
  const int64_t rows = std::min(length, size);
  batch.tokens.assign(tokens.end() - rows, tokens.end());
  batch.positions.resize(rows);
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.sample_positions = batch.positions;
  batch.samples.assign(rows, 0);
  batch.targets.assign(rows, -1);
  batch.segment_bounds = {0, static_cast<int32_t>(rows)};
  batch.sample_bounds = batch.segment_bounds;
  batch.max_segment_rows = rows;
  return batch;
}

// Draws from softmax(logits / temperature) over the top k ids.
class Sampler {
 public:
  explicit Sampler(const v1::GenerateAction& action)
      : temperature_(action.has_temperature() ? action.temperature()
                                              : kDefaultTemperature),
        top_k_(action.has_top_k() ? action.top_k() : kDefaultTopK),
        random_(action.seed()) {}

  int32_t Draw(const std::vector<float>& logits) {
    std::vector<int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto likelier = [&](int32_t a, int32_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    };
    if (temperature_ <= 0.0) {
      return *std::min_element(ids.begin(), ids.end(), likelier);
    }
    const size_t kept =
        top_k_ > 0 ? std::min<size_t>(top_k_, ids.size()) : ids.size();
    std::partial_sort(ids.begin(), ids.begin() + kept, ids.end(), likelier);
    ids.resize(kept);
    std::vector<double> weights(kept);
    for (size_t i = 0; i < kept; ++i) {
      weights[i] = std::exp((logits[ids[i]] - logits[ids[0]]) / temperature_);
    }
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    // 53 random bits, the same on every platform.
    double left = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
    for (size_t i = 0; i < kept; ++i) {
      left -= weights[i];
      if (left < 0.0) return ids[i];
    }
    return ids[kept - 1];
  }

 private:
  const double temperature_;
  const int64_t top_k_;
  std::mt19937_64 random_;
};

// Empty on ranks that don't have the head.
absl::StatusOr<std::vector<float>> NextLogits(
    Stream& stream, const TrainingState& state,
    const std::vector<int32_t>& tokens, int64_t context_length) {
  const MicroBatch batch = LastTokens(tokens, context_length);
  LossSums unused;
  ASSIGN_OR_RETURN(
      const OwnedTensor logits,
      state.pipeline->Logits(
          {stream,
           state.place,
           *state.parallel,
           {&batch},
           [&](const DeviceBatch& staged) -> PassContext {
             return {
                 stream,         ComputeDType(state.training_spec.precision),
                 nullptr,        staged,
                 *state.regions, *state.attention};
           },
           unused}));
  if (logits.empty()) return std::vector<float>();
  std::vector<float> host(logits->cols());
  // One row: dense whatever its stride.
  const Tensor row(logits->raw(), DType::kFloat32, {logits->cols()},
                   logits->device());
  RETURN_IF_ERROR(ops::CopyToHost(stream, row, host.data()));
  return host;
}

}  // namespace

absl::Status Generate(const RankContext& context, const TrainingState& state,
                      const Tokenizer& tokenizer,
                      const v1::GenerateAction& action, int64_t context_length,
                      const std::function<void(const std::string&)>& emit) {
  std::vector<int32_t> tokens = {tokenizer.end_token()};
  tokenizer.Encode(action.prompt(), tokens);
  Sampler sampler(action);
  const int64_t most =
      action.has_max_tokens() ? action.max_tokens() : kDefaultMaxTokens;
  for (int64_t i = 0; i < most; ++i) {
    ASSIGN_OR_RETURN(
        std::vector<float> logits,
        NextLogits(context.device.stream(), state, tokens, context_length));
    // A model's vocabulary may be padded: its last ids stand for nothing.
    logits.resize(std::min<size_t>(logits.size(), tokenizer.vocabulary()));
    // All ranks compute, as they may hold a part of the model each; the last
    // one, which has the head, decides.
    int32_t token = logits.empty() ? 0 : sampler.Draw(logits);
    const Tensor decision(&token, DType::kInt32, {1}, DeviceKind::kCpu);
    RETURN_IF_ERROR(
        context.world.Broadcast(decision, context.world.size() - 1)->Wait());
    if (token == tokenizer.end_token()) break;
    ASSIGN_OR_RETURN(const std::string bytes, tokenizer.DecodeOne(token));
    emit(bytes);
    tokens.push_back(token);
    v1::Progress progress;
    progress.set_phase("generating");
    progress.set_fraction(static_cast<double>(i + 1) /
                          static_cast<double>(most));
    context.reporter.SetProgress(i + 1, progress);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
