// BatchLoader: the micro-batches of one data share, step after step, made ahead
// of their use on a thread of its own.
//
//   BatchLoader loader(dataset, order, options);
//   ASSIGN_OR_RETURN(StepBatch batch, loader.Next());  // one step's work
//
// Step s of global batch B takes positions [sB, (s + 1)B) of the global sample
// sequence, so a batch may span epochs; share i of n takes those of ShareOf.
// `dataset` must outlive the loader. Nothing in it depends on the number of
// ranks but the share.
//
// Threads: one thread calls Next(). At most two steps are held: the one being
// made and the one waiting. The destructor stops the thread.
#ifndef LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_
#define LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/data/dataset.h"
#include "worker/data/micro_batch.h"
#include "worker/data/sample_order.h"

namespace lockstep {

// Share `index` of `count` of each global batch.
struct DataShare {
  int64_t index = 0;
  int64_t count = 1;
};

// One optimizer step's work of one share.
struct StepBatch {
  // At most `micro_batch` samples each, in order; none where the share is empty
  // (fewer samples than shares).
  std::vector<MicroBatch> micro_batches;
  // Of the share that has most. Ranks that gather parameters together all make
  // as many passes, some of them empty.
  int64_t most_micro_batches = 0;
  // The step's first position in the global sample sequence.
  int64_t first_position = 0;
  // Samples and valid targets of the whole global batch, all shares together.
  int64_t samples = 0;
  int64_t valid_targets = 0;
  // Rows (tokens) of this share.
  int64_t rows = 0;
};

class BatchLoader {
 public:
  struct Options {
    int64_t global_batch = 1;
    DataShare share;
    // Most samples of one micro-batch.
    int64_t micro_batch = 1;
    // Where the first step starts: a checkpoint's data cursor.
    int64_t first_position = 0;
    // Positions of the whole run (epochs x samples): the last step ends there
    // and may be short. Absent: endless.
    std::optional<int64_t> total_positions;
  };

  BatchLoader(const Dataset& dataset, SampleOrder order, Options options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // The next step, in order. Waits until it is made, which takes no other
  // process and no network. OUT_OF_RANGE after the last position;
  // INVALID_ARGUMENT where the options make no sense.
  absl::StatusOr<StepBatch> Next() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  StepBatch Make(int64_t first, int64_t last) const;
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const Dataset& dataset_;
  const SampleOrder order_;
  const Options options_;
  int64_t next_position_;  // of Next()'s thread only

  absl::Mutex mutex_;
  std::optional<StepBatch> ready_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: reads all of the above
};

// The samples of a dataset, once and in order, for evaluation: this share's
// contiguous part (ShareOf), a micro-batch at a time.
//
//   ValidationBatches batches(dataset, share, micro_batch);
//   while (const MicroBatch* batch = batches.Next()) ...
//
// Threads: one. `dataset` must outlive it.
class ValidationBatches {
 public:
  ValidationBatches(const Dataset& dataset, DataShare share,
                    int64_t micro_batch);
  // Micro-batches of this share (0 where it is empty), and of the share that
  // has most.
  int64_t count() const;
  int64_t most_count() const;
  // Null after the last one. Lives until the next call.
  const MicroBatch* Next();

 private:
  const Dataset& dataset_;
  const int64_t shares_;
  const int64_t micro_batch_;
  const BatchShare part_;
  int64_t next_;
  MicroBatch batch_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_BATCH_LOADER_H_
