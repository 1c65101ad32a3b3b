#include "worker/dist/gloo_group_factory.h"

#include "absl/memory/memory.h"
#include "common/status_macros.h"
#include "worker/dist/gloo_peer_link.h"
#include "worker/dist/gloo_process_group.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<GlooGroupFactory>> GlooGroupFactory::Create(
    const GlooGroupFactoryOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<GlooDevice> device,
                   GlooDevice::Create(options.address));
  return absl::WrapUnique(new GlooGroupFactory(options, std::move(device)));
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> GlooGroupFactory::Make(
    const GroupSpec& spec) {
  GlooProcessGroupOptions group;
  group.name = spec.name;
  group.rank = spec.rank;
  group.size = spec.size;
  group.store = options_.store;
  group.key_prefix = spec.key_prefix;
  group.device = device_.get();
  group.thread = &thread_;
  group.allocator = options_.allocator;
  group.ring = options_.ring;
  group.shared_memory = options_.shared_memory;
  group.connect_timeout = options_.connect_timeout;
  group.collective_timeout = options_.collective_timeout;
  return MakeGlooProcessGroup(group);
}

absl::StatusOr<std::unique_ptr<PeerLink>> GlooGroupFactory::MakePeerLink(
    const GroupSpec& spec) {
  GlooLinkOptions link;
  link.group = spec.name;
  link.rank = spec.rank;
  link.size = spec.size;
  link.store = options_.store;
  link.key_prefix = spec.key_prefix;
  link.device = device_.get();
  link.connect_timeout = options_.connect_timeout;
  return MakeGlooPeerLink(link, options_.collective_timeout);
}

}  // namespace lockstep
