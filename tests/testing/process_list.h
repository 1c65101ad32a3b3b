// The processes of this host, as tests look for those that should be gone.
//
// A test marks what it starts with an environment variable, which descendants
// inherit; whoever still has it afterwards is an orphan.
#ifndef LOCKSTEP_TESTS_TESTING_PROCESS_LIST_H_
#define LOCKSTEP_TESTS_TESTING_PROCESS_LIST_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep {
namespace testing {

inline constexpr char kMarkerVariable[] = "LOCKSTEP_TEST_MARKER";

struct MarkedProcess {
  pid_t pid = 0;
  // The program's file name, "lockstep-rank".
  std::string program;
  std::string command_line;
};

// Live processes (zombies are not) that carry `marker`, by pid.
std::vector<MarkedProcess> FindMarked(const std::string& marker);

// Those of them that run `program`.
std::vector<MarkedProcess> FindMarked(const std::string& marker,
                                      const std::string& program);

// Waits until none is left; DEADLINE_EXCEEDED lists those that are.
absl::Status WaitForNoneMarked(const std::string& marker,
                               absl::Duration timeout);

// Waits until the process has ended.
absl::Status WaitForProcessEnd(pid_t pid, absl::Duration timeout);

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_PROCESS_LIST_H_
