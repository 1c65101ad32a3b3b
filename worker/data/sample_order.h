// SampleOrder: the one endless global sequence of samples, an epoch's
// permutation after another. Position p of it is a pure function of (seed, p).
#ifndef LOCKSTEP_WORKER_DATA_SAMPLE_ORDER_H_
#define LOCKSTEP_WORKER_DATA_SAMPLE_ORDER_H_

#include <cstdint>

namespace lockstep {

// A keyed permutation by cycle-walking a Feistel network (Black and Rogaway,
// CT-RSA 2002): O(1) memory, any position in O(1).
class SampleOrder {
 public:
  // `samples` of one epoch, above 0.
  SampleOrder(uint64_t seed, int64_t samples);
  // Sample at position p >= 0; epoch p / samples.
  int64_t At(int64_t position) const;

 private:
  uint64_t seed_;
  int64_t samples_;
  int half_bits_;
};

// Share `index` of `count` of positions [0, batch): [first, last).
struct BatchShare {
  int64_t first = 0;
  int64_t last = 0;
};
// floor(index batch / count) up to floor((index + 1) batch / count).
BatchShare ShareOf(int64_t batch, int64_t index, int64_t count);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_SAMPLE_ORDER_H_
