// JobHistory: everything that happened to one job, in order, each with a
// sequence number that rises by one: what watchers see, and the steps that
// `get steps` prints. Kept in append-only segments of capped size; the oldest
// goes when there are too many (docs/formats/step_history.md).
//
//   history->AppendStep(generation, step);     // a repeat is dropped
//   updates = history->Read(after_sequence, limit);
//   history->WaitForMore(after_sequence, after_progress, timeout);
//
// Progress is passed on to watchers but not kept. When the disk is full,
// updates stay in memory until it takes them, so that watchers miss nothing.
// Files are not synced: they survive the coordinator's death, and a power cut
// up to the last few seconds. What must survive more is in the JobStore.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_COORDINATOR_JOBS_JOB_HISTORY_H_
#define LOCKSTEP_COORDINATOR_JOBS_JOB_HISTORY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "coordinator/jobs/history_file.h"
#include "lockstep/v1/job_service.pb.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

struct HistorySummary {
  // Generation of the last step.
  int64_t generation = 0;
  std::optional<v1::StepReport> last_step;
  std::optional<v1::EvaluationReport> last_evaluation;
  // Of all steps, each in its newest generation.
  int64_t tokens = 0;
  // Medians over the newest steps.
  std::optional<double> tokens_per_second;
  std::optional<double> step_seconds;
};

// A step, its tokens and seconds are all that speed needs.
struct RecentStep {
  int64_t tokens = 0;
  double seconds = 0.0;
};

class JobHistory {
 public:
  struct Options {
    int64_t segment_bytes = 16 << 20;
    int segments = 4;
  };

  // Reads what is in `folder`, which is made at the first append.
  static absl::StatusOr<std::unique_ptr<JobHistory>> Open(std::string folder,
                                                          Options options);
  ~JobHistory();

  // Appends an update of any kind; its sequence is set here, and returned.
  int64_t Append(int64_t generation, v1::JobUpdate update);
  // Append unless the same was appended before: a step or evaluation not newer
  // than the last of its generation, an output whose message is not newer than
  // the generation's last, or anything of an old generation. Says whether it
  // was new.
  bool AppendStep(int64_t generation, const v1::StepReport& step);
  bool AppendEvaluation(int64_t generation,
                        const v1::EvaluationReport& evaluation);
  bool AppendOutput(int64_t generation, int64_t message_sequence,
                    v1::ActionOutput output);
  void SetProgress(const v1::Progress& progress);
  // Writes what is kept in memory, if the disk takes it by now. An append does
  // so too, and so do Settle and the destructor.
  void TryAgain();
  // Closes the file; the next append opens it again.
  void Settle();
  // Ends all waits: the job is deleted.
  void Close();

  // Up to `limit` updates behind `after_sequence`, oldest first. What was
  // dropped for size is skipped.
  absl::StatusOr<std::vector<v1::JobUpdate>> Read(int64_t after_sequence,
                                                  int limit) const;
  // Each step above `after_step` in its newest generation, in step order.
  absl::StatusOr<std::vector<v1::StepReport>> Steps(int64_t after_step) const;

  struct Progress {
    v1::Progress progress;
    // Rises with each change; 0 before the first.
    int64_t version = 0;
  };
  Progress progress() const;
  int64_t last_sequence() const;
  bool closed() const;
  HistorySummary summary() const;

  // Waits until there is an update behind `after_sequence`, a progress newer
  // than `after_progress`, or the history is closed; false on timeout.
  bool WaitForMore(int64_t after_sequence, int64_t after_progress,
                   absl::Duration timeout) const;

 private:
  struct Segment {
    int64_t number = 0;
    int64_t bytes = 0;
  };
  // Where a record is; one in kIndexEvery has an entry.
  struct IndexEntry {
    int64_t sequence = 0;
    int64_t segment = 0;
    int64_t offset = 0;
  };
  struct Unwritten {
    int64_t sequence = 0;
    HistoryRecord record;
    std::string frame;
  };
  // What a reader needs to go on without the lock.
  struct Snapshot {
    std::vector<Segment> segments;
    std::vector<HistoryRecord> unwritten;
    // Where to begin in the first segment.
    int64_t offset = 0;
  };

  JobHistory(std::string folder, Options options);
  absl::Status Load();
  std::string SegmentPath(int64_t number) const;
  int64_t AppendRecord(HistoryRecord record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As much of unwritten_ as the disk takes.
  void WriteKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteFrame(int64_t sequence, const std::string& frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenSegment() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteInSummary(const HistoryRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddIndexEntry(int64_t sequence, int64_t segment, int64_t offset)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Snapshot TakeSnapshot(int64_t after_sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `take` until it says false.
  absl::Status Scan(
      const Snapshot& snapshot,
      const std::function<bool(const HistoryRecord&)>& take) const;
  absl::StatusOr<int64_t> TokensBelow(const Snapshot& snapshot,
                                      int64_t step) const;

  const std::string folder_;
  const Options options_;

  mutable absl::Mutex mutex_;
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mutex_);
  std::vector<IndexEntry> index_ ABSL_GUARDED_BY(mutex_);
  std::optional<HistoryAppender> appender_ ABSL_GUARDED_BY(mutex_);
  std::deque<Unwritten> unwritten_ ABSL_GUARDED_BY(mutex_);
  int64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t records_since_index_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Progress progress_ ABSL_GUARDED_BY(mutex_);

  // Newest generation of any step, evaluation or output.
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<v1::StepReport> last_step_ ABSL_GUARDED_BY(mutex_);
  int64_t last_step_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<v1::EvaluationReport> last_evaluation_ ABSL_GUARDED_BY(mutex_);
  int64_t last_evaluation_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_output_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<RecentStep> recent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_JOBS_JOB_HISTORY_H_
