// SpawnRanks: runs a function once per rank, each in a thread of its own.
//
//   InMemoryStore store;
//   EXPECT_OK(SpawnRanks(4, [&](int rank) -> absl::Status {
//     ASSIGN_OR_RETURN(auto mesh, DeviceMesh::Create(...store...));
//     ...
//     return absl::OkStatus();
//   }));
//
// A gTest assertion inside the function marks the test as failed but doesn't
// end the other ranks: return a Status instead, and give every collective a
// deadline.
#ifndef LOCKSTEP_TESTS_TESTING_SPAWN_RANKS_H_
#define LOCKSTEP_TESTS_TESTING_SPAWN_RANKS_H_

#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace testing {

// The status of each rank, in rank order, once all have returned.
inline std::vector<absl::Status> SpawnRanksCollect(
    int size, const std::function<absl::Status(int rank)>& function) {
  std::vector<absl::Status> statuses(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = function(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

// OK, or the first failed rank's status with "rank R: " before its message.
inline absl::Status SpawnRanks(
    int size, const std::function<absl::Status(int rank)>& function) {
  const std::vector<absl::Status> statuses = SpawnRanksCollect(size, function);
  for (int rank = 0; rank < size; ++rank) {
    if (!statuses[rank].ok()) {
      return absl::Status(
          statuses[rank].code(),
          absl::StrCat("rank ", rank, ": ", statuses[rank].message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_SPAWN_RANKS_H_
