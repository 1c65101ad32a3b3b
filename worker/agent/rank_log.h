// RankLog: writes what a rank's process prints into its log file.
//
// The rank's stdout and stderr are one pipe; a thread of ours reads it, so that
// a file over its cap, or a full disk, never blocks the rank: what doesn't fit
// is read and dropped, and the file's last line says so.
//
// Threads: Drain and LastLine may be called from any thread.
#ifndef LOCKSTEP_WORKER_AGENT_RANK_LOG_H_
#define LOCKSTEP_WORKER_AGENT_RANK_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/file_descriptor.h"

namespace lockstep {

inline constexpr int64_t kRankLogCapBytes = int64_t{64} << 20;

class RankLog {
 public:
  // Makes the file's folders; appends to a file that is there.
  // UNAVAILABLE or RESOURCE_EXHAUSTED (a full disk) with the path.
  static absl::StatusOr<std::unique_ptr<RankLog>> Open(const std::string& path,
                                                       int64_t cap_bytes);
  // Drains.
  ~RankLog();

  // The pipe's end for the rank; the parent closes its copy after the start.
  FileDescriptor TakeWriteEnd() { return std::move(write_end_); }

  // Writes all that is in the pipe now, and ends. Waits for the file system.
  void Drain();

  // The last line that was printed, at most 400 bytes of it.
  std::string LastLine() const;

 private:
  RankLog(FileDescriptor file, FileDescriptor read_end,
          FileDescriptor write_end, FileDescriptor stop, int64_t cap_bytes,
          int64_t written_bytes);
  void Pump();
  void Append(const char* data, size_t size);

  const FileDescriptor file_;
  const FileDescriptor read_end_;
  FileDescriptor write_end_;
  const FileDescriptor stop_;  // an eventfd
  const int64_t cap_bytes_;
  int64_t written_bytes_;  // the pump's only
  bool capped_ = false;    // the pump's only
  mutable absl::Mutex mutex_;
  // The last bytes that were printed.
  std::string tail_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_RANK_LOG_H_
