#include "common/model/pipeline_stages.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace lockstep {
namespace {

// Training FLOPs of a token, unit by unit.
std::vector<double> UnitCosts(const ModelSpec& model, int64_t sequence_length) {
  const auto width = static_cast<double>(model.width);
  const auto head_width = static_cast<double>(model.head_width);
  const double attention =
      width * head_width *
      static_cast<double>(2 * model.heads + 2 * model.kv_heads);
  const double feed_forward =
      width * static_cast<double>(model.feed_forward_width) *
      (model.family == v1::MODEL_FAMILY_GPT2 ? 2.0 : 3.0);
  const double scores = 2.0 * static_cast<double>(sequence_length) *
                        static_cast<double>(model.heads) * head_width;
  std::vector<double> costs(model.layers + 2,
                            6.0 * (attention + feed_forward + scores));
  costs.front() = 0.0;
  costs.back() = model.task == v1::TASK_CLASSIFICATION
                     ? 0.0
                     : 6.0 * width * static_cast<double>(model.vocabulary);
  return costs;
}

// Of a cut: the costliest stage, then the sum of squares.
using Price = std::pair<double, double>;

}  // namespace

std::vector<Portion> PlanStages(const ModelSpec& model, int64_t sequence_length,
                                int64_t stages) {
  const std::vector<double> costs = UnitCosts(model, sequence_length);
  const auto units = static_cast<int64_t>(costs.size());
  CHECK(stages >= 1 && stages <= units)
      << stages << " stages of " << units << " units";
  std::vector<double> before(units + 1, 0.0);
  for (int64_t unit = 0; unit < units; ++unit) {
    before[unit + 1] = before[unit] + costs[unit];
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Of the first u units in so many stages, and where the last one begins.
  const std::vector<Price> none(units + 1, {kInfinity, kInfinity});
  std::vector<Price> rest = none;
  rest[0] = {0.0, 0.0};
  std::vector<std::vector<int32_t>> begin(stages + 1,
                                          std::vector<int32_t>(units + 1, 0));
  for (int64_t stage = 1; stage <= stages; ++stage) {
    std::vector<Price> best = none;
    for (int64_t end = stage; end <= units; ++end) {
      for (int64_t from = end - 1; from >= stage - 1; --from) {
        const double cost = before[end] - before[from];
        // It only grows from here on.
        if (cost > best[end].first) break;
        const Price price = {std::max(rest[from].first, cost),
                             rest[from].second + cost * cost};
        if (price < best[end]) {
          best[end] = price;
          begin[stage][end] = static_cast<int32_t>(from);
        }
      }
    }
    rest = std::move(best);
  }
  std::vector<Portion> portions(stages);
  int64_t end = units;
  for (int64_t stage = stages; stage >= 1; --stage) {
    portions[stage - 1] = {begin[stage][end], end};
    end = begin[stage][end];
  }
  return portions;
}

absl::Status CheckPipelineParallel(const ModelSpec& model, int64_t pp,
                                   int64_t virtual_stages) {
  const int64_t units = model.layers + 2;
  if (pp * virtual_stages <= units) return absl::OkStatus();
  const std::string stages =
      virtual_stages == 1
          ? absl::StrCat("parallel.pp is ", pp)
          : absl::StrCat("parallel.pp x parallel.virtual_stages is ", pp, " x ",
                         virtual_stages);
  return absl::InvalidArgumentError(absl::StrCat(
      stages, ", but a model of ", model.layers, " layers has ", units,
      " units to give to stages (embedding, layers, head): at most ",
      units / virtual_stages, " ranks would do"));
}

}  // namespace lockstep
