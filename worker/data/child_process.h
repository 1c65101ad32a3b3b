// RunChild: runs a program to its end, without a shell.
#ifndef LOCKSTEP_WORKER_DATA_CHILD_PROCESS_H_
#define LOCKSTEP_WORKER_DATA_CHILD_PROCESS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

struct ChildProcess {
  // Program and arguments.
  std::vector<std::string> command;
  // Its stderr goes to this file; it gets no stdin and no stdout.
  std::string stderr_path;
  absl::Duration timeout;
  // Called about once a second while it runs. May be empty.
  std::function<void()> alive;
};

// Its exit code. INTERNAL when a signal ended it; DEADLINE_EXCEEDED after
// killing it; NOT_FOUND and the like when it can't be started.
absl::StatusOr<int> RunChild(const ChildProcess& child);

// Folder of the running program.
absl::StatusOr<std::string> ProgramFolder();

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CHILD_PROCESS_H_
