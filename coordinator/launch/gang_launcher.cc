#include "coordinator/launch/gang_launcher.h"

#include <algorithm>

namespace lockstep {
namespace {

// A worker that doesn't say counts as the lowest level we build for.
v1::CpuLevel LowestLevel(const Placement& placement) {
  v1::CpuLevel lowest = v1::CPU_LEVEL_X86_64_V4;
  for (const PlacedRank& rank : placement) {
    const v1::CpuLevel level = rank.cpu_level == v1::CPU_LEVEL_UNSPECIFIED
                                   ? v1::CPU_LEVEL_X86_64_V2
                                   : rank.cpu_level;
    lowest = std::min(lowest, level);
  }
  return lowest;
}

uint64_t LimitOf(const v1::JobSpec& spec, const PlacedRank& rank) {
  const uint64_t asked = spec.resources().memory_per_device().bytes();
  if (asked == 0 || rank.memory_bytes == 0) {
    return std::max(asked, rank.memory_bytes);
  }
  return std::min(asked, rank.memory_bytes);
}

}  // namespace

std::vector<v1::RankAssignment> MakeAssignments(const LaunchOrder& order) {
  const v1::Layout& layout = order.layout.layout();
  const int64_t shares = layout.fsdp() * layout.dp();
  const int64_t ranks_per_share = layout.tp() * layout.cp();
  const v1::CpuLevel level = LowestLevel(order.placement);
  std::vector<v1::RankAssignment> assignments;
  for (size_t i = 0; i < order.placement.size(); ++i) {
    const PlacedRank& place = order.placement[i];
    const auto rank = static_cast<int64_t>(i);
    v1::RankAssignment assignment;
    *assignment.mutable_gang() = order.gang;
    assignment.set_rank(rank);
    assignment.set_world_size(static_cast<int64_t>(order.placement.size()));
    *assignment.mutable_spec() = order.spec;
    *assignment.mutable_layout() = layout;
    assignment.set_device(place.device);
    assignment.set_memory_limit_bytes(LimitOf(order.spec, place));
    assignment.set_cpu_level(level);
    assignment.set_data_share_index(rank / ranks_per_share % shares);
    assignment.set_data_share_count(shares);
    assignment.set_rendezvous_secret(order.secret);
    assignment.set_resume_checkpoint(order.resume_checkpoint);
    assignment.set_resume_other_job(order.resume_other_job);
    assignment.set_worker(place.worker);
    assignment.set_predicted_peak_bytes(
        order.layout.predicted_memory().peak_bytes());
    for (size_t j = 0; j < order.placement.size(); ++j) {
      if (order.placement[j].host == place.host) {
        assignment.add_host_ranks(static_cast<int64_t>(j));
      }
    }
    assignments.push_back(std::move(assignment));
  }
  return assignments;
}

std::map<std::string, v1::PrepareGang> MakePrepareGangs(
    const LaunchOrder& order) {
  std::map<std::string, v1::PrepareGang> by_worker;
  for (v1::RankAssignment& assignment : MakeAssignments(order)) {
    v1::PrepareGang& prepare = by_worker[assignment.worker()];
    *prepare.mutable_gang() = order.gang;
    *prepare.add_ranks() = std::move(assignment);
  }
  return by_worker;
}

}  // namespace lockstep
