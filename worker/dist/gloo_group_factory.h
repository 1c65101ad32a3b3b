// GlooGroupFactory: process groups over Gloo, with what all groups of a rank
// share: the TCP device and the communication thread.
#ifndef LOCKSTEP_WORKER_DIST_GLOO_GROUP_FACTORY_H_
#define LOCKSTEP_WORKER_DIST_GLOO_GROUP_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/allocator.h"
#include "worker/dist/collective_ring.h"
#include "worker/dist/communication_thread.h"
#include "worker/dist/gloo_device.h"
#include "worker/dist/gloo_process_group.h"
#include "worker/dist/group_factory.h"
#include "worker/dist/store.h"

namespace lockstep {

// Pointers must outlive the factory's groups; only `ring` may be null.
struct GlooGroupFactoryOptions {
  Store* store = nullptr;
  // Interface, host name or IP address of this host for the data plane.
  std::string address = "127.0.0.1";
  Allocator* allocator = nullptr;
  CollectiveRing* ring = nullptr;
  SharedMemory shared_memory = SharedMemory::kWhereOneHost;
  absl::Duration connect_timeout = absl::Minutes(2);
  absl::Duration collective_timeout = absl::Minutes(30);
};

// Must outlive the groups it makes.
class GlooGroupFactory : public GroupFactory {
 public:
  // INVALID_ARGUMENT if the address isn't this host's.
  static absl::StatusOr<std::unique_ptr<GlooGroupFactory>> Create(
      const GlooGroupFactoryOptions& options);

  absl::StatusOr<std::unique_ptr<ProcessGroup>> Make(
      const GroupSpec& spec) override;
  absl::StatusOr<std::unique_ptr<PeerLink>> MakePeerLink(
      const GroupSpec& spec) override;

 private:
  GlooGroupFactory(const GlooGroupFactoryOptions& options,
                   std::unique_ptr<GlooDevice> device)
      : options_(options), device_(std::move(device)) {}

  const GlooGroupFactoryOptions options_;
  const std::unique_ptr<GlooDevice> device_;
  CommunicationThread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_GLOO_GROUP_FACTORY_H_
