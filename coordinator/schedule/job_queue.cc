#include "coordinator/schedule/job_queue.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/bytes.h"
#include "common/status_macros.h"
#include "coordinator/schedule/pack_policy.h"

namespace lockstep {
namespace {

constexpr size_t kMostNamedJobs = 3;

std::string Devices(int64_t count) {
  return absl::StrCat(count, count == 1 ? " device" : " devices");
}

ClusterView AllFree(ClusterView cluster) {
  for (WorkerView& worker : cluster.workers) {
    for (DeviceView& device : worker.devices) device.job.clear();
  }
  return cluster;
}

// Distinct sizes of the cluster's devices, smallest first; 0 for unknown.
std::set<uint64_t> MemorySizes(const ClusterView& cluster) {
  std::set<uint64_t> sizes;
  for (const WorkerView& worker : cluster.workers) {
    for (const DeviceView& device : worker.devices) {
      sizes.insert(device.memory_bytes);
    }
  }
  return sizes;
}

int64_t CountDevices(const ClusterView& cluster, uint64_t memory_bytes) {
  int64_t count = 0;
  for (const WorkerView& worker : cluster.workers) {
    for (const DeviceView& device : worker.devices) {
      if (device.memory_bytes == 0 || device.memory_bytes >= memory_bytes) {
        ++count;
      }
    }
  }
  return count;
}

// The layout and the smallest devices that will do. OUT_OF_RANGE: too few
// devices in `cluster` are free; FAILED_PRECONDITION: it fits none of them.
absl::StatusOr<StartDecision> TryPlace(const JobRecord& job,
                                       const ClusterView& cluster) {
  const DeviceUse use =
      job.devices_at_most ? DeviceUse::kAtMost : DeviceUse::kExact;
  const uint64_t asked = job.spec.resources().memory_per_device().bytes();
  absl::Status last = absl::OutOfRangeError("too few devices");
  for (const uint64_t size : MemorySizes(cluster)) {
    const uint64_t least = std::max(size, asked);
    v1::ClusterShape shape;
    shape.set_devices(job.devices);
    shape.set_memory_per_device_bytes(size);
    const auto layout = ResolveLayout(job.spec, shape, use);
    if (!layout.ok()) {
      if (layout.status().code() != absl::StatusCode::kFailedPrecondition) {
        return layout.status();
      }
      last = layout.status();
      continue;
    }
    auto placement = PackPolicy(cluster, layout->world_size(), least);
    if (placement.has_value()) {
      return StartDecision{job.id, *layout, *std::move(placement)};
    }
    last = absl::OutOfRangeError("too few devices");
  }
  return last;
}

// The jobs that hold devices, for "waiting for job X".
std::string Holders(const ClusterView& cluster) {
  std::set<std::string> jobs;
  for (const WorkerView& worker : cluster.workers) {
    for (const DeviceView& device : worker.devices) {
      if (!device.job.empty()) jobs.insert(device.job);
    }
  }
  if (jobs.empty()) return "";
  const size_t named = std::min(jobs.size(), kMostNamedJobs);
  const std::vector<std::string> first(jobs.begin(),
                                       std::next(jobs.begin(), named));
  return absl::StrCat("; waiting for job ", absl::StrJoin(first, ", "),
                      jobs.size() > named ? ", ..." : "");
}

void Occupy(ClusterView& cluster, const StartDecision& start) {
  for (WorkerView& worker : cluster.workers) {
    for (DeviceView& device : worker.devices) {
      for (const PlacedRank& rank : start.placement) {
        if (rank.worker == worker.name && rank.device == device.id) {
          device.job = start.job;
        }
      }
    }
  }
}

}  // namespace

absl::StatusOr<StartDecision> PlaceJob(const JobRecord& job,
                                       const ClusterView& cluster) {
  if (cluster.devices() == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("needs ", Devices(job.devices), ", there are no workers"));
  }
  absl::StatusOr<StartDecision> placed = TryPlace(job, cluster);
  if (placed.ok() ||
      (placed.status().code() != absl::StatusCode::kOutOfRange &&
       placed.status().code() != absl::StatusCode::kFailedPrecondition)) {
    return placed;
  }
  const absl::StatusOr<StartDecision> alone = TryPlace(job, AllFree(cluster));
  if (alone.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "needs ", Devices(static_cast<int64_t>(alone->placement.size())), ", ",
        cluster.free_devices(), cluster.free_devices() == 1 ? " is" : " are",
        " free of ", cluster.devices(), Holders(cluster)));
  }
  if (alone.status().code() != absl::StatusCode::kOutOfRange) {
    return alone.status();
  }
  const uint64_t asked = job.spec.resources().memory_per_device().bytes();
  if (cluster.devices() >= job.devices && asked > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "needs ", Devices(job.devices), " with ", FormatBytes(asked),
        " each, the cluster has ", CountDevices(cluster, asked),
        " of that size among its ", cluster.devices()));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "needs ", Devices(job.devices), ", the cluster has ", cluster.devices()));
}

QueueDecision DecideQueue(const std::vector<QueuedJob>& jobs,
                          ClusterView cluster) {
  QueueDecision decision;
  std::string blocked_by;
  for (const QueuedJob& job : jobs) {
    const std::string& id = job.record->id;
    if (!job.held_back.empty()) {
      decision.reasons[id] = job.held_back;
      if (job.keeps_place && blocked_by.empty()) blocked_by = id;
      continue;
    }
    const absl::StatusOr<StartDecision> placed = PlaceJob(*job.record, cluster);
    if (!placed.ok()) {
      decision.reasons[id] = std::string(placed.status().message());
      const bool waits_for_jobs =
          placed.status().code() == absl::StatusCode::kUnavailable;
      if (waits_for_jobs && blocked_by.empty()) blocked_by = id;
      continue;
    }
    if (!blocked_by.empty()) {
      decision.reasons[id] = absl::StrCat("waits behind job ", blocked_by,
                                          ", which was submitted earlier");
      continue;
    }
    Occupy(cluster, *placed);
    decision.starts.push_back(*placed);
  }
  return decision;
}

}  // namespace lockstep
