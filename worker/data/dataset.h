// Dataset: the samples of one part (training or validation) of a token cache,
// memory-mapped: a data set larger than memory works.
#ifndef LOCKSTEP_WORKER_DATA_DATASET_H_
#define LOCKSTEP_WORKER_DATA_DATASET_H_

#include <cstdint>

#include "worker/data/micro_batch.h"

namespace lockstep {

// Threads: const functions may be called from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // Samples of one epoch.
  virtual int64_t samples() const = 0;
  // Valid targets of all samples together, and of one.
  virtual int64_t targets() const = 0;
  virtual int64_t ValidTargets(int64_t sample) const = 0;
  // UTF-8 bytes of the text that the targets stand for, newlines included; 0
  // where there is no text (tokens).
  virtual int64_t text_bytes() const = 0;
  // Appends sample `sample` to `batch`, as number `global_sample` of the global
  // sample sequence.
  virtual void Append(int64_t sample, int64_t global_sample,
                      MicroBatch& batch) const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_DATASET_H_
