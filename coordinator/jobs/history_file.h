// One segment of a job's history: frames in an append-only file, each with a
// length, a checksum and a serialized v1::JobUpdate
// (docs/formats/step_history.md).
//
// What is read is not trusted: a frame with a bad length, checksum or message
// ends the file.
#ifndef LOCKSTEP_COORDINATOR_JOBS_HISTORY_FILE_H_
#define LOCKSTEP_COORDINATOR_JOBS_HISTORY_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

struct HistoryRecord {
  // Attempt that it belongs to; 0 before the first.
  int64_t generation = 0;
  // The worker's sequence number of the message that it came with; 0 if none.
  int64_t message_sequence = 0;
  v1::JobUpdate update;
};

// Frame of one record, ready to be appended.
std::string EncodeHistoryRecord(const HistoryRecord& record);

// What a segment begins with.
std::string_view HistoryFileHeader();

// Calls `take` with the records of `path` from byte `offset` (0, or where a
// frame begins) up to byte `limit`, and where each frame begins, until it says
// false. Returns where the last good frame ends.
// NOT_FOUND if there is no file; DATA_LOSS if it is no history at all.
absl::StatusOr<int64_t> ReadHistoryFile(
    const std::string& path, int64_t offset, int64_t limit,
    const std::function<bool(HistoryRecord record, int64_t offset)>& take);

// Appends to a segment. Threads: one at a time.
class HistoryAppender {
 public:
  // Opens or makes `path` and cuts it to `bytes`, so that a torn tail goes.
  static absl::StatusOr<HistoryAppender> Open(const std::string& path,
                                              int64_t bytes);
  HistoryAppender(HistoryAppender&& other) noexcept;
  HistoryAppender& operator=(HistoryAppender&& other) noexcept;
  ~HistoryAppender();

  // All or nothing. RESOURCE_EXHAUSTED: the disk is full.
  absl::Status Append(std::string_view frame);
  int64_t bytes() const { return bytes_; }

 private:
  HistoryAppender(int file, int64_t bytes, std::string path);

  int file_;
  int64_t bytes_;
  std::string path_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_JOBS_HISTORY_FILE_H_
