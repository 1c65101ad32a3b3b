// FakeDataset: samples whose tokens tell which sample they are of.
#ifndef LOCKSTEP_TESTS_UNIT_DATA_FAKE_DATASET_H_
#define LOCKSTEP_TESTS_UNIT_DATA_FAKE_DATASET_H_

#include <algorithm>
#include <cstdint>

#include "worker/data/dataset.h"

namespace lockstep {
namespace testing {

// Sample i has 1 + i % 3 rows, all of token i.
class FakeDataset : public Dataset {
 public:
  explicit FakeDataset(int64_t samples) : samples_(samples) {}
  int64_t samples() const override { return samples_; }
  int64_t targets() const override {
    int64_t sum = 0;
    for (int64_t i = 0; i < samples_; ++i) sum += ValidTargets(i);
    return sum;
  }
  int64_t ValidTargets(int64_t sample) const override { return 1 + sample % 3; }
  int64_t text_bytes() const override { return 0; }
  void Append(int64_t sample, int64_t global_sample,
              MicroBatch& batch) const override {
    if (batch.sample_bounds.empty()) batch.sample_bounds.push_back(0);
    for (int64_t i = 0; i < ValidTargets(sample); ++i) {
      batch.tokens.push_back(static_cast<int32_t>(sample));
      batch.samples.push_back(static_cast<uint32_t>(global_sample));
    }
    batch.sample_bounds.push_back(static_cast<int32_t>(batch.tokens.size()));
  }

 private:
  const int64_t samples_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_DATA_FAKE_DATASET_H_
