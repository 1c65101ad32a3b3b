// Contexts: named coordinators that the user has told us of, and which of them
// is current. Kept in XDG_CONFIG_HOME/lockstep/contexts.json, or
// ~/.config/lockstep/contexts.json:
//
//   {"current": "lab", "contexts": {"lab": {"coordinator": "10.0.0.5:7700"}}}
#ifndef LOCKSTEP_CLI_CONTEXTS_H_
#define LOCKSTEP_CLI_CONTEXTS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/console.h"

namespace lockstep {

struct Contexts {
  // Empty: none, so that commands use the local cluster.
  std::string current;
  // Name to HOST:PORT.
  std::map<std::string, std::string> coordinators;

  // What is kept; nothing if there is no file.
  // INVALID_ARGUMENT if the file can't be understood.
  static absl::StatusOr<Contexts> Load(const Console& console);
  // FAILED_PRECONDITION if there is no home for the file.
  absl::Status Save(const Console& console) const;

  // Address of the current context's coordinator.
  std::optional<std::string> CurrentAddress() const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CONTEXTS_H_
