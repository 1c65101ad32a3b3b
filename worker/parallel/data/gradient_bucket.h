// Gradient buckets: neighbouring units whose gradients are reduced together
// (Li et al., arXiv:2006.15704, section 3.2.3). Gradients lie in one arena in
// unit order, so a bucket is a view and nothing is copied.
#ifndef LOCKSTEP_WORKER_PARALLEL_DATA_GRADIENT_BUCKET_H_
#define LOCKSTEP_WORKER_PARALLEL_DATA_GRADIENT_BUCKET_H_

#include <cstdint>
#include <vector>

#include "worker/nn/parameter_store.h"

namespace lockstep {

struct GradientBucket {
  FlatRange range;
  // Complete, and flushed, when backward has left its units: from the first to
  // the last that it comes to, the lowest.
  int first_unit = 0;
  int last_unit = 0;
};

// Bytes of a bucket: an eighth of the gradients, so that small models overlap
// too, within 1 MiB (latency) and 25 MiB (PyTorch's default).
int64_t BucketBytes(const ParameterStore& store);

// Buckets in the order in which backward completes them: last units first.
// Each has at least `bucket_bytes` of gradients but the last one, unless a unit
// alone is larger.
std::vector<GradientBucket> PlanBuckets(const ParameterStore& store,
                                        int64_t bucket_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_DATA_GRADIENT_BUCKET_H_
