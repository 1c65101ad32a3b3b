#include "common/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

absl::Status Bad(const std::string& text, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "address '", text, "' ", why, "; want HOST:PORT, as in 127.0.0.1:7700"));
}

}  // namespace

std::string Address::ToString() const {
  if (host.find(':') != std::string::npos) {
    return absl::StrCat("[", host, "]:", port);
  }
  return absl::StrCat(host, ":", port);
}

bool Address::IsLoopback() const {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::StatusOr<Address> ParseAddress(std::string_view text_view) {
  const std::string text(text_view);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Bad(text, "has no port");
  Address address;
  address.host = text.substr(0, colon);
  if (!address.host.empty() && address.host.front() == '[') {
    if (address.host.back() != ']') return Bad(text, "has an unclosed '['");
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return Bad(text, "is an IPv6 address without brackets");
  }
  if (address.host.empty()) return Bad(text, "has no host");
  if (!absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 0 || address.port > 65535) {
    return Bad(text, "has no port from 0 to 65535");
  }
  return address;
}

}  // namespace lockstep
