#include "worker/agent/local_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "worker/agent/file_descriptor.h"

namespace lockstep {

std::string LocalAddressTowards(const Address& peer) {
  constexpr char kLoopback[] = "127.0.0.1";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(peer.port);
  if (getaddrinfo(peer.host.c_str(), port.c_str(), &hints, &found) != 0) {
    return kLoopback;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found,
                                                             freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr;
       entry = entry->ai_next) {
    // Connecting a datagram socket only asks the routing table.
    const FileDescriptor probe(
        socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t length = sizeof(own);
    char host[NI_MAXHOST] = {};
    if (probe.valid() &&
        connect(probe.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
        getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) ==
            0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), length, host,
                    sizeof(host), nullptr, 0, NI_NUMERICHOST) == 0) {
      return host;
    }
  }
  return kLoopback;
}

}  // namespace lockstep
