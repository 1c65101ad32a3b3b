// Which documents of the training files are held out for validation
// (`validation: {fraction: f}`), decided before anything is tokenized.
//
// Of n documents floor(f n) are held out by a fixed permutation that doesn't
// depend on the job's seed; of one text file, its last floor(f n) bytes from a
// line start; of tokens, the last floor(f n).
#ifndef LOCKSTEP_WORKER_DATA_HOLDOUT_H_
#define LOCKSTEP_WORKER_DATA_HOLDOUT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "worker/data/data_root.h"
#include "worker/data/input_files.h"

namespace lockstep {

// Half-open.
struct ItemRange {
  int64_t first = 0;
  int64_t last = 0;
};

// What of some files belongs to one part (training or validation).
class DataPart {
 public:
  // All of it.
  DataPart() = default;
  // No document.
  static DataPart Nothing();
  // Bytes of the one text file, or tokens.
  static DataPart Range(ItemRange range);
  enum class Side : uint8_t { kKept, kHeldOut };
  // One side of `documents` documents, of which `held_out` are held out.
  static DataPart Documents(int64_t documents, int64_t held_out, Side side);

  // Whether document number `index` belongs to it.
  bool Contains(int64_t index) const;
  // Set where the part is a range.
  const std::optional<ItemRange>& range() const { return range_; }

 private:
  std::optional<ItemRange> range_;
  // How many documents there are and how many of them are held out. Without
  // any held out, one side has all.
  int64_t documents_ = 0;
  int64_t held_out_ = 0;
  Side side_ = Side::kKept;
};

struct Holdout {
  DataPart train;
  DataPart validation;
};

// `items`: documents (rows, files) or tokens in `inputs`. INVALID_ARGUMENT
// where a part would be empty.
absl::StatusOr<Holdout> HoldOutDocuments(int64_t items, double fraction);
absl::StatusOr<Holdout> HoldOutTail(int64_t items, double fraction);
// Of the one text file in `inputs`: a tail that starts with a line.
absl::StatusOr<Holdout> HoldOutLines(const DataRoot& root, const Inputs& inputs,
                                     double fraction);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_HOLDOUT_H_
