// A child process that answers lines with lines.
#ifndef LOCKSTEP_TESTS_BENCH_CHILD_H_
#define LOCKSTEP_TESTS_BENCH_CHILD_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// Ends the child when it goes.
class Child {
 public:
  static absl::StatusOr<std::unique_ptr<Child>> Start(
      const std::vector<std::string>& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // One line of its standard output; UNAVAILABLE when it has ended.
  absl::StatusOr<std::string> ReadLine();
  // Sends a line and waits for the answer, as a number.
  absl::StatusOr<double> Ask(const std::string& line);

 private:
  Child(pid_t pid, FILE* in, FILE* out) : pid_(pid), in_(in), out_(out) {}
  const pid_t pid_;
  FILE* const in_;
  FILE* const out_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCH_CHILD_H_
