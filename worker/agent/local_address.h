// The address by which this host reaches another, and so is reached itself.
#ifndef LOCKSTEP_WORKER_AGENT_LOCAL_ADDRESS_H_
#define LOCKSTEP_WORKER_AGENT_LOCAL_ADDRESS_H_

#include <string>

#include "common/address.h"

namespace lockstep {

// This host's address on the way to `peer`; no packet is sent. "127.0.0.1" for
// a peer on this host, or one that can't be resolved or reached now.
std::string LocalAddressTowards(const Address& peer);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_LOCAL_ADDRESS_H_
