// The header of a safetensors file: 8 bytes of little-endian length, then so
// many bytes of JSON, then the tensors' bytes without gaps or overlaps.
// https://github.com/huggingface/safetensors, "Format". Written and parsed
// here; fp32 only.
#ifndef LOCKSTEP_WORKER_CHECKPOINT_SAFETENSORS_H_
#define LOCKSTEP_WORKER_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/file_reader.h"

namespace lockstep {

struct SafetensorsEntry {
  std::string key;
  std::vector<int64_t> shape;
  int64_t elements = 0;
};

// The bytes before the data: length and JSON, padded with spaces to a multiple
// of 64. The tensors' data follows in the order of `entries`.
std::string SafetensorsHeader(const std::vector<SafetensorsEntry>& entries);

struct SafetensorsTensor {
  std::vector<int64_t> shape;
  // In the file.
  uint64_t begin_byte = 0;
  uint64_t bytes = 0;
};

// Reads and checks a header, which is hostile: DATA_LOSS, naming file and key,
// on a length beyond the file or 16 MiB, broken JSON, repeated keys, another
// dtype, shapes that don't fit their bytes, and data that overlaps, has gaps or
// leaves the file.
absl::StatusOr<std::map<std::string, SafetensorsTensor>> ReadSafetensorsHeader(
    const FileReader& file);

// Product of non-negative extents; nullopt when one is negative or it passes
// 2^60.
std::optional<int64_t> ElementsOf(const std::vector<int64_t>& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CHECKPOINT_SAFETENSORS_H_
