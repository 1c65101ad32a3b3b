// GlooDevice: the process's TCP device, and what Gloo's exceptions say.
#ifndef LOCKSTEP_WORKER_DIST_GLOO_DEVICE_H_
#define LOCKSTEP_WORKER_DIST_GLOO_DEVICE_H_

#include <exception>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gloo::transport {
class Context;
}  // namespace gloo::transport

namespace lockstep {

// A local address and one thread that does the socket I/O of all links.
// Outlives them. Ignores SIGPIPE in this process.
class GlooDevice {
 public:
  // `address`: a network interface ("eth0"), a host name or an IP address of
  // this host. INVALID_ARGUMENT if it is none.
  static absl::StatusOr<std::unique_ptr<GlooDevice>> Create(
      const std::string& address);
  virtual ~GlooDevice() = default;

  // For gloo_link.cc: the connections of rank `rank` to the others of `size`.
  virtual std::shared_ptr<gloo::transport::Context> CreateContext(int rank,
                                                                  int size) = 0;
};

// The text of one of Gloo's exceptions, without file and line.
std::string GlooCause(const std::exception& error);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_GLOO_DEVICE_H_
