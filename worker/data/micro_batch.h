// MicroBatch: the packed tokens of some samples, on the host, as the model
// takes them. Sequences lie one after another without padding.
#ifndef LOCKSTEP_WORKER_DATA_MICRO_BATCH_H_
#define LOCKSTEP_WORKER_DATA_MICRO_BATCH_H_

#include <cstdint>
#include <vector>

namespace lockstep {

struct MicroBatch {
  // All of length N, the number of tokens.
  std::vector<int32_t> tokens;
  // Position for embedding or rotation; restarts at each document's start
  // unless attention crosses documents.
  std::vector<int32_t> positions;
  // Index of the token within its sample, and the low 32 bits of the sample's
  // place in the global sample sequence: keys of dropout.
  std::vector<int32_t> sample_positions;
  std::vector<uint32_t> samples;
  // Language model: N targets, -1 where there is none. Classification: one
  // class per sample.
  std::vector<int32_t> targets;
  // Attention stays within [bounds[s], bounds[s + 1]); first 0, last N.
  std::vector<int32_t> segment_bounds;
  // Rows of each sample, likewise: pooled by classification.
  std::vector<int32_t> sample_bounds;
  int64_t max_segment_rows = 0;

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  void Clear();
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_MICRO_BATCH_H_
