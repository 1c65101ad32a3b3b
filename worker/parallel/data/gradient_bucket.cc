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
  int first_unit = store.units() - 1;
  for (size_t s = store.segments().size(); s-- > 0;) {
    const int unit = store.segments()[s].unit;
    const int64_t begin = store.shard_begin(static_cast<int>(s));
    const bool first_of_unit = s == 0 || store.segments()[s - 1].unit != unit;
    if (!first_of_unit || (end - begin < bucket_elements && s > 0)) continue;
    if (end > begin) buckets.push_back({{begin, end}, first_unit, unit});
    end = begin;
    if (s > 0) first_unit = store.segments()[s - 1].unit;
  }
  return buckets;
}

}  // namespace lockstep
