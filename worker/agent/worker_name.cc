#include "worker/agent/worker_name.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// Binds a socket of the abstract namespace: one holder per host (or container),
// no file, and gone with its process. Invalid if another holds it.
FileDescriptor Claim(const std::string& name) {
  const std::string key = absl::StrCat("lockstep-worker/", name);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The first byte stays 0: abstract.
  const size_t length = std::min(key.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, key.data(), length);
  FileDescriptor socket_fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd.valid() ||
      bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  length)) != 0) {
    return FileDescriptor();
  }
  return socket_fd;
}

}  // namespace

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "worker";
  std::string host(name);
  host = host.substr(0, host.find('.'));
  return host.empty() ? "worker" : host;
}

absl::StatusOr<ClaimedName> ClaimWorkerName(const std::string& base) {
  constexpr int kMaxWorkersPerHost = 1000;
  for (int i = 1; i <= kMaxWorkersPerHost; ++i) {
    ClaimedName claimed;
    claimed.name = i == 1 ? base : absl::StrCat(base, "-", i);
    claimed.claim = Claim(claimed.name);
    if (claimed.claim.valid()) return claimed;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("names ", base, " to ", base, "-", kMaxWorkersPerHost,
                   " are all taken on this host"));
}

}  // namespace lockstep
