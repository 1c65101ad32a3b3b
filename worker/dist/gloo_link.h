// GlooLink: messages between the ranks of one group, over Gloo's TCP transport.
// gloo_link.cc and gloo_device.cc are the only files that see Gloo; its
// exceptions become Status there.
//
// Memory is registered with one peer as a Region; messages are matched by slot,
// a number that both sides derive from what they are about to do. Between two
// ranks, messages arrive in the order in which both sides posted them.
//
// A link that has failed (a peer gone, a deadline passed, Fail called) stays
// failed with its first status: every wait ends with it at once, and all
// connections are closed, which tells the peers. A peer that closes its end
// after the last message fails only what still waits for that peer.
//
// Threads: one thread posts and waits; Fail may be called from any thread.
#ifndef LOCKSTEP_WORKER_DIST_GLOO_LINK_H_
#define LOCKSTEP_WORKER_DIST_GLOO_LINK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/dist/gloo_device.h"
#include "worker/dist/store.h"

namespace lockstep {

struct GlooLinkOptions {
  // For messages.
  std::string group;
  int rank = 0;
  int size = 1;
  // Where ranks find each other; keys start with `key_prefix`, which no other
  // link of the gang may have.
  Store* store = nullptr;
  std::string key_prefix;
  GlooDevice* device = nullptr;
  // For meeting at the store, and again for connecting.
  absl::Duration connect_timeout = absl::Minutes(2);
};

class GlooLink {
 public:
  // `data` may be sent to and received from one peer, until the region goes.
  // It must go before its link, and with nothing pending unless the link has
  // failed.
  class Region {
   public:
    virtual ~Region() = default;
    // Posts a message of bytes [offset, offset + bytes). None if bytes is 0.
    virtual absl::Status Send(uint64_t slot, int64_t offset, int64_t bytes) = 0;
    virtual absl::Status Receive(uint64_t slot, int64_t offset,
                                 int64_t bytes) = 0;
    // Waits until the oldest posted receive is done. Fails the link when it
    // can't.
    virtual absl::Status WaitReceive(absl::Time deadline) = 0;
    // Waits until all posted sends have left, or all receives are done.
    virtual absl::Status WaitSends(absl::Time deadline) = 0;
    virtual absl::Status WaitReceives(absl::Time deadline) = 0;
  };

  // Connects to all other ranks. DEADLINE_EXCEEDED names a rank that didn't
  // come; UNAVAILABLE one that can't be reached.
  static absl::StatusOr<std::unique_ptr<GlooLink>> Connect(
      const GlooLinkOptions& options);
  virtual ~GlooLink() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<Region> Register(int peer, void* data,
                                           int64_t bytes) = 0;
  // Fails the link, unless it has failed: returns its first failure. After it
  // nothing is sent from or received into any region.
  virtual absl::Status Fail(absl::Status status) = 0;
  // OK while it hasn't failed.
  virtual absl::Status status() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_GLOO_LINK_H_
