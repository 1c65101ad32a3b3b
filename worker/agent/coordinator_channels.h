// CoordinatorChannels: gRPC channels to the coordinator's addresses, one of
// which is current. With several, a session that fails moves on to the next.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_WORKER_AGENT_COORDINATOR_CHANNELS_H_
#define LOCKSTEP_WORKER_AGENT_COORDINATOR_CHANNELS_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/address.h"

namespace lockstep {

class CoordinatorChannels {
 public:
  // `addresses` is not empty.
  explicit CoordinatorChannels(const std::vector<Address>& addresses);

  std::shared_ptr<grpc::Channel> Current() const {
    return channels_[current_ % channels_.size()];
  }
  std::string CurrentAddress() const {
    return addresses_[current_ % addresses_.size()].ToString();
  }
  void MoveOn() { ++current_; }

 private:
  const std::vector<Address> addresses_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;  // constant
  std::atomic<size_t> current_{0};
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_COORDINATOR_CHANNELS_H_
