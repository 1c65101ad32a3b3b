// RuntimeDir: a folder for the worker's Unix socket, that only this user can
// enter and that goes when the object goes.
//
// It lies in /tmp: the path of a Unix socket has at most 107 bytes, and network
// file systems can't hold one. What killed workers left behind is removed by
// the next that starts: a live one holds a lock on its folder.
#ifndef LOCKSTEP_WORKER_AGENT_RUNTIME_DIR_H_
#define LOCKSTEP_WORKER_AGENT_RUNTIME_DIR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/agent/file_descriptor.h"

namespace lockstep {

class RuntimeDir {
 public:
  // `parent` is /tmp but in tests. UNAVAILABLE with the reason.
  static absl::StatusOr<std::unique_ptr<RuntimeDir>> Make(
      const std::string& parent);
  ~RuntimeDir();

  const std::string& path() const { return path_; }

 private:
  RuntimeDir(std::string path, FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const FileDescriptor lock_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_RUNTIME_DIR_H_
