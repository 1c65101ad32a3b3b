#include "worker/train/gather.h"

#include <algorithm>
#include <cstring>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// Host words of every rank; `words` are int32 of equal number on all ranks.
absl::StatusOr<std::vector<int32_t>> GatherWords(ProcessGroup& group,
                                                 std::vector<int32_t> words) {
  const int64_t count = static_cast<int64_t>(words.size());
  std::vector<int32_t> all(count * group.size());
  const Tensor input(words.data(), DType::kInt32, {count}, DeviceKind::kCpu);
  const Tensor output(all.data(), DType::kInt32, {count * group.size()},
                      DeviceKind::kCpu);
  RETURN_IF_ERROR(group.AllGather(input, output)->Wait());
  return all;
}

}  // namespace

absl::Status SumOverRanks(ProcessGroup& group, absl::Span<double> values) {
  std::vector<int32_t> words(2 * values.size());
  std::memcpy(words.data(), values.data(), values.size() * sizeof(double));
  ASSIGN_OR_RETURN(const std::vector<int32_t> all,
                   GatherWords(group, std::move(words)));
  std::vector<double> gathered(values.size() * group.size());
  std::memcpy(gathered.data(), all.data(), all.size() * sizeof(int32_t));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.0;
    for (int rank = 0; rank < group.size(); ++rank) {
      values[i] += gathered[rank * values.size() + i];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> GatherBytes(ProcessGroup& group,
                                                     const std::string& bytes) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> sizes,
                   GatherWords(group, {static_cast<int32_t>(bytes.size())}));
  const size_t largest = *std::max_element(sizes.begin(), sizes.end());
  const size_t words_each = (largest + 3) / 4;
  std::vector<int32_t> words(words_each);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  ASSIGN_OR_RETURN(const std::vector<int32_t> all,
                   GatherWords(group, std::move(words)));
  std::vector<std::string> gathered;
  for (int rank = 0; rank < group.size(); ++rank) {
    gathered.emplace_back(
        reinterpret_cast<const char*>(all.data() + rank * words_each),
        sizes[rank]);
  }
  return gathered;
}

}  // namespace lockstep
