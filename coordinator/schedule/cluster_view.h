// What placement knows about the cluster at one moment.
#ifndef LOCKSTEP_COORDINATOR_SCHEDULE_CLUSTER_VIEW_H_
#define LOCKSTEP_COORDINATOR_SCHEDULE_CLUSTER_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

struct DeviceView {
  std::string id;
  // 0 is unknown.
  uint64_t memory_bytes = 0;
  // Job that holds it; empty if it is free.
  std::string job;
};

// A worker that takes gangs.
struct WorkerView {
  std::string name;
  std::string incarnation;
  // Equal for workers of one host.
  std::string host;
  v1::CpuLevel cpu_level = v1::CPU_LEVEL_UNSPECIFIED;
  std::vector<DeviceView> devices;
};

// By name.
struct ClusterView {
  std::vector<WorkerView> workers;

  int64_t devices() const;
  int64_t free_devices() const;
};

// A device for each rank, in rank order.
struct PlacedRank {
  std::string worker;
  std::string incarnation;
  std::string host;
  std::string device;
  uint64_t memory_bytes = 0;
  v1::CpuLevel cpu_level = v1::CPU_LEVEL_UNSPECIFIED;
};
using Placement = std::vector<PlacedRank>;

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_SCHEDULE_CLUSTER_VIEW_H_
