// Sandbox: a temporary folder in which a test runs the `lockstep` programs, and
// the mark that finds all that they started.
//
//   Sandbox sandbox;
//   const CommandResult run = sandbox.Lockstep({"run", job, "--local", "2"});
//   EXPECT_EQ(run.code, 0) << run;
//   EXPECT_OK(sandbox.WaitForNothingLeft(absl::Seconds(5)));
//
// Commands run in the folder. The destructor kills whatever the test left.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_TESTS_TESTING_SANDBOX_H_
#define LOCKSTEP_TESTS_TESTING_SANDBOX_H_

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/testing/child_process.h"
#include "tests/testing/full_test.h"
#include "tests/testing/process_list.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace testing {

// How long one command may take, unless a test says otherwise. Generous: it
// only bounds what hangs.
inline constexpr absl::Duration kCommandTimeout = absl::Seconds(90);

struct CommandResult {
  // The exit code; 128 + the signal; or -1 when it had to be killed because it
  // ran past its timeout.
  int code = -1;
  std::string out;
  std::string err;

  // `out` as JSON; a discarded value (is_discarded()) if it is none.
  nlohmann::json Json() const;
  // Each line of `out` as JSON.
  std::vector<nlohmann::json> JsonLines() const;
};
std::ostream& operator<<(std::ostream& os, const CommandResult& result);

class Sandbox {
 public:
  Sandbox();
  ~Sandbox();

  const TempDir& dir() const { return dir_; }
  const std::string& marker() const { return marker_; }
  // Set for every program started from now on.
  void SetEnvironment(const std::string& name, const std::string& value);

  // Starts one of our programs: "lockstep", "lockstep-worker" ... CHECK-fails
  // if it can't be started.
  std::unique_ptr<ChildProcess> Start(const std::string& program,
                                      std::vector<std::string> arguments);
  // Runs `lockstep` to its end.
  CommandResult Lockstep(std::vector<std::string> arguments,
                         absl::Duration timeout = kCommandTimeout);
  // Waits for a started program and collects what it wrote.
  static CommandResult Finish(ChildProcess& child,
                              absl::Duration timeout = kCommandTimeout);

  // Marked processes that run `program`.
  std::vector<MarkedProcess> Running(const std::string& program) const;
  absl::Status WaitForNothingLeft(absl::Duration timeout) const;

 private:
  const TempDir dir_;
  const std::string marker_;
  std::map<std::string, std::string> environment_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_SANDBOX_H_
