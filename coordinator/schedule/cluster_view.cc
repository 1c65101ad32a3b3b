#include "coordinator/schedule/cluster_view.h"

#include <algorithm>

namespace lockstep {

int64_t ClusterView::devices() const {
  int64_t count = 0;
  for (const WorkerView& worker : workers) {
    count += static_cast<int64_t>(worker.devices.size());
  }
  return count;
}

int64_t ClusterView::free_devices() const {
  int64_t count = 0;
  for (const WorkerView& worker : workers) {
    count += std::count_if(
        worker.devices.begin(), worker.devices.end(),
        [](const DeviceView& device) { return device.job.empty(); });
  }
  return count;
}

}  // namespace lockstep
