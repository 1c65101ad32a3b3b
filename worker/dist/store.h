// Store: the key-value meeting point of a gang's ranks.
#ifndef LOCKSTEP_WORKER_DIST_STORE_H_
#define LOCKSTEP_WORKER_DIST_STORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

// Keys are set once. Threads: all functions may be called from any thread.
class Store {
 public:
  virtual ~Store() = default;
  virtual absl::Status Set(const std::string& key,
                           const std::string& value) = 0;
  // Waits until all keys exist. DEADLINE_EXCEEDED names the first missing one.
  virtual absl::StatusOr<std::vector<std::string>> Get(
      const std::vector<std::string>& keys, absl::Duration timeout) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_STORE_H_
