// HOST:PORT as flags and messages have it.
#ifndef LOCKSTEP_COMMON_ADDRESS_H_
#define LOCKSTEP_COMMON_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace lockstep {

struct Address {
  std::string host;  // name, IPv4 or IPv6 address, without brackets
  int port = 0;

  // "127.0.0.1:7700", "[::1]:7700".
  std::string ToString() const;
  // Whether it reaches this host only: localhost, 127.0.0.0/8 or ::1.
  bool IsLoopback() const;
};

// Reads "HOST:PORT" or "[IPV6]:PORT"; port 0 to 65535.
// INVALID_ARGUMENT names the text and what is wrong with it.
absl::StatusOr<Address> ParseAddress(std::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_ADDRESS_H_
