#include "worker/dist/gloo_device.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <net/if.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// The numeric form of a host name; Gloo's own look-up crashes on unknown names.
absl::StatusOr<std::string> ResolveHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
      error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data address \"", host,
        "\" is neither an interface nor a host: ", gai_strerror(error)));
  }
  std::array<char, NI_MAXHOST> numeric{};
  const int error =
      getnameinfo(found->ai_addr, found->ai_addrlen, numeric.data(),
                  numeric.size(), nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data address \"", host,
                     "\" has no numeric form: ", gai_strerror(error)));
  }
  return std::string(numeric.data());
}

class TcpGlooDevice : public GlooDevice {
 public:
  explicit TcpGlooDevice(std::shared_ptr<gloo::transport::Device> device)
      : device_(std::move(device)) {}
  std::shared_ptr<gloo::transport::Context> CreateContext(int rank,
                                                          int size) override {
    return device_->createContext(rank, size);
  }

 private:
  const std::shared_ptr<gloo::transport::Device> device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GlooDevice>> GlooDevice::Create(
    const std::string& address) {
  // Gloo writes to sockets whose peer may be gone.
  signal(SIGPIPE, SIG_IGN);
  gloo::transport::tcp::attr attributes;
  if (if_nametoindex(address.c_str()) != 0) {
    attributes.iface = address;
  } else {
    ASSIGN_OR_RETURN(attributes.hostname, ResolveHost(address));
  }
  try {
    return std::make_unique<TcpGlooDevice>(
        gloo::transport::tcp::CreateDevice(attributes));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data address \"", address, "\" can't be used: ", GlooCause(error)));
  }
}

std::string GlooCause(const std::exception& error) {
  // Gloo's messages start with "[file:line] ".
  std::string_view text = error.what();
  if (const size_t end = text.find("] ");
      end != text.npos && text[0] == '[' && text.find(".cc:") < end) {
    text.remove_prefix(end + 2);
  }
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace lockstep
