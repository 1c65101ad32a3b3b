#include "coordinator/schedule/pack_policy.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace lockstep {
namespace {

struct Offer {
  const WorkerView* worker = nullptr;
  std::vector<const DeviceView*> devices;

  int64_t count() const { return static_cast<int64_t>(devices.size()); }
};

std::vector<Offer> OffersOf(const ClusterView& cluster, uint64_t memory_bytes) {
  std::vector<Offer> offers;
  for (const WorkerView& worker : cluster.workers) {
    Offer offer;
    offer.worker = &worker;
    for (const DeviceView& device : worker.devices) {
      const bool large =
          device.memory_bytes == 0 || device.memory_bytes >= memory_bytes;
      if (device.job.empty() && large) offer.devices.push_back(&device);
    }
    if (offer.count() > 0) offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace

std::optional<Placement> PackPolicy(const ClusterView& cluster, int64_t ranks,
                                    uint64_t memory_bytes) {
  std::vector<Offer> offers = OffersOf(cluster, memory_bytes);
  // Those that hold the whole gang, tightest first; then the rest, largest
  // first.
  std::sort(
      offers.begin(), offers.end(), [ranks](const Offer& a, const Offer& b) {
        const auto key = [ranks](const Offer& offer) {
          const bool whole = offer.count() >= ranks;
          return std::tuple(!whole, whole ? offer.count() : -offer.count(),
                            offer.worker->name);
        };
        return key(a) < key(b);
      });
  std::vector<Offer> taken;
  int64_t left = ranks;
  for (Offer& offer : offers) {
    if (left == 0) break;
    offer.devices.resize(
        static_cast<size_t>(std::min<int64_t>(left, offer.count())));
    left -= offer.count();
    taken.push_back(std::move(offer));
  }
  if (left > 0) return std::nullopt;
  std::sort(taken.begin(), taken.end(), [](const Offer& a, const Offer& b) {
    return std::tie(a.worker->host, a.worker->name) <
           std::tie(b.worker->host, b.worker->name);
  });
  Placement placement;
  for (const Offer& offer : taken) {
    for (const DeviceView* device : offer.devices) {
      placement.push_back({offer.worker->name, offer.worker->incarnation,
                           offer.worker->host, device->id, device->memory_bytes,
                           offer.worker->cpu_level});
    }
  }
  return placement;
}

}  // namespace lockstep
