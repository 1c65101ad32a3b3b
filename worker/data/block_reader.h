// BlockReader: a range of an input file, block by block; LineReader: its lines.
// They read with pread and not through a mapping, because a mapped file that
// shrinks kills the process.
#ifndef LOCKSTEP_WORKER_DATA_BLOCK_READER_H_
#define LOCKSTEP_WORKER_DATA_BLOCK_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/unique_fd.h"
#include "worker/data/data_root.h"
#include "worker/data/holdout.h"
#include "worker/data/input_files.h"

namespace lockstep {

class BlockReader {
 public:
  // `file` must outlive the reader.
  static absl::StatusOr<BlockReader> Open(const DataRoot& root,
                                          const InputFile& file,
                                          ItemRange range);
  // The next block, empty at the end of the range; lives until the next call.
  absl::StatusOr<std::string_view> Next();
  const InputFile& file() const { return *file_; }

 private:
  BlockReader(const InputFile& file, UniqueFd fd, ItemRange range)
      : file_(&file), fd_(std::move(fd)), range_(range) {}

  const InputFile* file_;
  UniqueFd fd_;
  ItemRange range_;
  std::vector<char> block_;
};

class LineReader {
 public:
  explicit LineReader(BlockReader reader) : reader_(std::move(reader)) {}
  // The next line without its newline; nothing at the end. Lives until the next
  // call. INVALID_ARGUMENT for a line longer than `most_bytes`.
  absl::StatusOr<std::optional<std::string_view>> Next(int64_t most_bytes);
  // Number of the line that Next gave, from 1.
  int64_t line() const { return line_; }

 private:
  BlockReader reader_;
  std::string_view rest_;  // of the block
  std::string carried_;    // start of a line that crosses blocks
  bool ended_ = false;
  int64_t line_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_BLOCK_READER_H_
