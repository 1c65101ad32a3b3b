#include "worker/parallel/data/gradient_bucket.h"

#include <algorithm>

namespace lockstep {

int64_t BucketBytes(const ParameterStore& store) {
  return std::clamp<int64_t>(store.elements() * SizeOf(DType::kFloat32) / 8,
                             int64_t{1} << 20, int64_t{25} << 20);
}

std::vector<GradientBucket> PlanBuckets(const ParameterStore& store,
                                        int64_t bucket_bytes) {
  std::vector<GradientBucket> buckets;
  const int64_t bucket_elements = bucket_bytes / SizeOf(DType::kFloat32);
  int64_t end = store.elements();
  for (int unit = store.units() - 1; unit >= 0; --unit) {
    const int64_t begin = store.unit_range(unit).begin;
    if (end - begin < bucket_elements && unit > 0) continue;
    if (end > begin) buckets.push_back({{begin, end}, unit});
    end = begin;
  }
  return buckets;
}

}  // namespace lockstep
