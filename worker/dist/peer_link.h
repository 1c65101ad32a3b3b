// PeerLink: messages between two ranks of a group that travel on their own,
// whatever collectives run meanwhile: a pipeline's activations and gradients.
//
// Both sides name a message by `tag`, which no other message under way between
// the two has, in that direction; order doesn't matter. Each call returns at
// once with a Work, and the tensor must stay alive and untouched until its
// Wait() returns. A Work may go unwaited only after Abort.
//
// Threads: one issues and waits; Abort may be called from any thread.
// Errors: as ProcessGroup's. A failed message fails the link.
#ifndef LOCKSTEP_WORKER_DIST_PEER_LINK_H_
#define LOCKSTEP_WORKER_DIST_PEER_LINK_H_

#include <cstdint>
#include <memory>

#include "kernels/tensor.h"
#include "worker/dist/work.h"

namespace lockstep {

class PeerLink {
 public:
  virtual ~PeerLink() = default;
  virtual std::unique_ptr<Work> Send(int peer, uint64_t tag,
                                     const Tensor& tensor) = 0;
  virtual std::unique_ptr<Work> Receive(int peer, uint64_t tag,
                                        const Tensor& tensor) = 0;
  // Ends all messages under way, and all later ones, with ABORTED.
  virtual void Abort() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_PEER_LINK_H_
