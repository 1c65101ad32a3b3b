#include "coordinator/launch/gang.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace lockstep {

std::vector<WorkerLife> Gang::Lives() const {
  std::vector<WorkerLife> lives;
  for (const GangRank& rank : ranks) {
    if (std::find(lives.begin(), lives.end(), rank.life) == lives.end()) {
      lives.push_back(rank.life);
    }
  }
  return lives;
}

bool Gang::AllStarted() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const GangRank& rank) { return rank.started; });
}

bool Gang::AllGone() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const GangRank& rank) { return rank.gone; });
}

std::optional<int64_t> Gang::LowestRankOn(const WorkerLife& life) const {
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].gone && ranks[i].life == life) {
      return static_cast<int64_t>(i);
    }
  }
  return std::nullopt;
}

bool Gang::RunsOn(const WorkerLife& life) const {
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](const GangRank& rank) { return rank.life == life; });
}

std::string GangText(const v1::GangId& gang) {
  return absl::StrCat("job ", gang.job(), " generation ", gang.generation());
}

void LogIfError(const absl::Status& status, const v1::GangId& gang) {
  if (!status.ok()) LOG(ERROR) << GangText(gang) << ": " << status.message();
}

}  // namespace lockstep
