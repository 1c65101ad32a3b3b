// Where the control groups (v1 or v2) of this process are.
#ifndef LOCKSTEP_COMMON_HOST_CONTROL_GROUP_H_
#define LOCKSTEP_COMMON_HOST_CONTROL_GROUP_H_

#include <string>
#include <vector>

namespace lockstep {

struct ControlGroup {
  bool v2 = false;
  // The process's own group first, then its ancestors; empty: none was found.
  std::vector<std::string> folders;
};

// The groups that `controller` ("memory", "cpu") limits this process by. `root`
// stands before every absolute path; a folder in tests, else empty.
ControlGroup FindControlGroup(const std::string& root,
                              const std::string& controller);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HOST_CONTROL_GROUP_H_
