// Stream: work of one device in order. On a CPU device work is done when the op
// returns; on CUDA it is queued. Ops take the stream first and allocate their
// scratch from its allocator.
//
// Threads: one thread at a time uses a stream.
#ifndef LOCKSTEP_KERNELS_STREAM_H_
#define LOCKSTEP_KERNELS_STREAM_H_

#include "absl/status/status.h"
#include "kernels/allocator.h"
#include "kernels/tensor.h"

namespace lockstep {

struct Backend;

class Stream {
 public:
  Stream(const Backend& backend, Allocator& allocator, DeviceKind device)
      : backend_(backend), allocator_(allocator), device_(device) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const Backend& backend() const { return backend_; }
  Allocator& allocator() const { return allocator_; }
  DeviceKind device() const { return device_; }
  // Waits until all queued work is done; reports its asynchronous errors.
  virtual absl::Status Synchronize() = 0;

 private:
  const Backend& backend_;
  Allocator& allocator_;
  const DeviceKind device_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_STREAM_H_
