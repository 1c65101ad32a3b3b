// What time brings to the gangs of a GangTable: SIGKILL after the grace time,
// hangs, reservations that expire; and the gauges.
#include <algorithm>
#include <csignal>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "worker/agent/gang_table.h"

namespace lockstep {
namespace {

// A coordinator that prepared a gang and then went away must not keep devices.
constexpr absl::Duration kReservationTime = absl::Seconds(60);
// A stopped process (SIGSTOP) makes no progress by itself: no need to wait for
// its limit, at which the ranks that wait for it would look just as hung.
constexpr absl::Duration kStoppedTime = absl::Seconds(5);

// The phase whose pace the median step tells; others have one of their own.
constexpr char kTraining[] = "training";

// How long the rank may be silent: a checkpoint that it saves, or a validation
// set, takes the longer the larger it is, whatever a step takes.
absl::Duration LimitOf(const RankRecord& rank) {
  const absl::Duration limit = rank.progress_age->Limit();
  if (rank.progress.phase() == kTraining) return limit;
  return std::max(limit, kHangTimeoutBeforeMedian);
}

// The likelier a rank is the one that the others wait for, the higher.
int Suspicion(char state) {
  switch (state) {
    case 'T':
      return 2;
    case 'D':
      return 1;
    default:
      return 0;
  }
}

std::string StateWords(char state) {
  switch (state) {
    case 'T':
      return "its process is stopped (SIGSTOP)";
    case 'D':
      return "its process waits for a disk or file system";
    case 'R':
      return "its process is busy";
    default:
      return "its process sleeps";
  }
}

std::string HangMessage(const RankRecord& rank, absl::Duration age,
                        char state) {
  const auto tenths = [](absl::Duration duration) {
    return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(100)));
  };
  std::string what = absl::StrCat("no progress for ", tenths(age));
  // A stopped process is not given all of its limit.
  if (state != 'T') {
    absl::StrAppend(&what, " (limit ", tenths(LimitOf(rank)), ")");
  }
  const std::string where =
      rank.progress.phase().empty()
          ? "while it started"
          : absl::StrCat("in step ", rank.step, ", ", rank.progress.phase());
  return absl::StrCat(what, " ", where, "; ", StateWords(state));
}

}  // namespace

void GangTable::Tick() {
  const absl::Duration now = options_.clock->Uptime();
  for (auto& [key, gang] : gangs_) {
    if (gang.state == GangRecord::State::kReserved) {
      if (now - gang.reserved_at >= kReservationTime) {
        LOG(WARNING) << "gang " << key << ": reservation expired";
        gang.ranks.clear();
      }
      continue;
    }
    for (RankRecord& rank : gang.ranks) {
      ReportIfOver(gang, rank);
      KillOverdue(rank);
    }
    FindHang(gang);
  }
  DropEnded();
}

void GangTable::KillOverdue(RankRecord& rank) {
  if (rank.process == nullptr || rank.exited_at.has_value() ||
      rank.end.sent_kill || !rank.kill_at.has_value() ||
      options_.clock->Uptime() < *rank.kill_at ||
      rank.process->State() == 'Z') {
    return;
  }
  rank.end.sent_kill = true;
  rank.process->Signal(SIGKILL);
}

void GangTable::FindHang(GangRecord& gang) {
  const absl::Duration now = options_.clock->Uptime();
  RankRecord* worst = nullptr;
  char worst_state = 'S';
  for (RankRecord& rank : gang.ranks) {
    // Ranks that are being stopped have a time limit of their own.
    if (rank.process == nullptr || rank.exited_at.has_value() ||
        rank.kill_at.has_value()) {
      continue;
    }
    const absl::Duration age = rank.progress_age->Age(now);
    const absl::Duration limit = LimitOf(rank);
    if (age < std::min(kStoppedTime, limit)) continue;
    const char state = rank.process->State();
    if (state == 'Z') continue;
    if (state != 'T' && age <= limit) continue;
    const bool worse = worst == nullptr ||
                       Suspicion(state) > Suspicion(worst_state) ||
                       (Suspicion(state) == Suspicion(worst_state) &&
                        age > worst->progress_age->Age(now));
    if (worse) {
      worst = &rank;
      worst_state = state;
    }
  }
  if (worst == nullptr) return;
  worst->end.hang =
      HangMessage(*worst, worst->progress_age->Age(now), worst_state);
  worst->end.sent_kill = true;
  worst->kill_at = now;
  worst->process->Signal(SIGKILL);
  AbortPeers(gang, *worst, absl::StrCat("hangs: ", *worst->end.hang));
}

void GangTable::UpdateMetrics() const {
  const absl::Duration now = options_.clock->Uptime();
  MetricsRegistry& metrics = *options_.metrics;
  int64_t reserved = 0;
  int64_t busy = 0;
  int64_t running = 0;
  for (const auto& [key, gang] : gangs_) {
    const auto ranks = static_cast<int64_t>(gang.ranks.size());
    (gang.state == GangRecord::State::kReserved ? reserved : busy) += ranks;
    for (const RankRecord& rank : gang.ranks) {
      if (rank.process == nullptr || rank.exited_at.has_value()) continue;
      ++running;
      const MetricLabels labels = {
          {"job", key.job}, {"rank", absl::StrCat(rank.assignment.rank())}};
      metrics.Set(metric_names::kWorkerRankStep, labels,
                  static_cast<double>(rank.step));
      metrics.Set(metric_names::kWorkerRankMemoryBytes, labels,
                  static_cast<double>(rank.progress.memory_bytes()));
      metrics.Set(metric_names::kWorkerRankResidentBytes, labels,
                  static_cast<double>(rank.process->ResidentBytes()));
      metrics.Set(metric_names::kWorkerRankProgressAgeSeconds, labels,
                  absl::ToDoubleSeconds(rank.progress_age->Age(now)));
    }
  }
  const auto devices = static_cast<int64_t>(options_.devices.size());
  metrics.Set(metric_names::kWorkerDevices, {{"state", "free"}},
              static_cast<double>(devices - reserved - busy));
  metrics.Set(metric_names::kWorkerDevices, {{"state", "reserved"}},
              static_cast<double>(reserved));
  metrics.Set(metric_names::kWorkerDevices, {{"state", "busy"}},
              static_cast<double>(busy));
  metrics.Set(metric_names::kWorkerRanksRunning, {},
              static_cast<double>(running));
}

}  // namespace lockstep
