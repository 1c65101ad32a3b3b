// Work: a collective under way.
#ifndef LOCKSTEP_WORKER_DIST_WORK_H_
#define LOCKSTEP_WORKER_DIST_WORK_H_

#include <memory>

#include "absl/status/status.h"

namespace lockstep {

// Wait() returns when the collective is done on this rank and its buffers may
// be read and reused; later calls give the same status. On a CPU group it
// blocks the calling thread; on CUDA it makes the caller's stream wait.
// Dropping a Work without waiting is allowed only after the group's Abort.
class Work {
 public:
  virtual ~Work() = default;
  virtual absl::Status Wait() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_WORK_H_
