#include "worker/data/block_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/files/file_error.h"
#include "common/status_macros.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

constexpr int64_t kBlockBytes = 1 << 20;

}  // namespace

absl::StatusOr<BlockReader> BlockReader::Open(const DataRoot& root,
                                              const InputFile& file,
                                              ItemRange range) {
  ASSIGN_OR_RETURN(OpenedFile opened, OpenInput(root, file));
  return BlockReader(file, std::move(opened.fd), range);
}

absl::StatusOr<std::string_view> BlockReader::Next() {
  const int64_t want = std::min(kBlockBytes, range_.last - range_.first);
  block_.resize(static_cast<size_t>(want));
  int64_t held = 0;
  while (held < want) {
    const ssize_t got =
        pread(fd_.get(), block_.data() + held, static_cast<size_t>(want - held),
              range_.first + held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", file_->display);
    if (got == 0) {
      return absl::FailedPreconditionError(StrCat(
          file_->display, " changed while the job was reading it: it ends at ",
          range_.first + held, " bytes, had ", file_->bytes));
    }
    held += got;
  }
  range_.first += want;
  return std::string_view(block_.data(), block_.size());
}

absl::StatusOr<std::optional<std::string_view>> LineReader::Next(
    int64_t most_bytes) {
  carried_.clear();
  ++line_;
  while (true) {
    const size_t newline = rest_.find('\n');
    const std::string_view piece = rest_.substr(0, newline);
    if (static_cast<int64_t>(carried_.size() + piece.size()) > most_bytes) {
      return absl::InvalidArgumentError(
          StrCat(reader_.file().display, ":", line_,
                 ": the line is longer than ", most_bytes, " bytes"));
    }
    if (newline != std::string_view::npos) {
      rest_.remove_prefix(newline + 1);
      if (carried_.empty()) return piece;
      carried_.append(piece);
      return std::string_view(carried_);
    }
    carried_.append(piece);
    if (!ended_) {
      ASSIGN_OR_RETURN(rest_, reader_.Next());
      ended_ = rest_.empty();
    } else {
      rest_ = {};
    }
    if (ended_) {
      if (carried_.empty()) return std::nullopt;
      return std::string_view(carried_);
    }
  }
}

}  // namespace lockstep
