#include "worker/data/holdout.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/files/file_error.h"
#include "common/status_macros.h"
#include "worker/data/sample_order.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

// Fixes which documents are held out, for all jobs alike.
constexpr uint64_t kHoldoutSeed = 0x484f4c444f5554ULL;

absl::StatusOr<int64_t> HeldOut(int64_t items, double fraction,
                                std::string_view unit) {
  const auto held_out =
      static_cast<int64_t>(std::floor(fraction * static_cast<double>(items)));
  if (held_out < 1 || held_out >= items) {
    return absl::InvalidArgumentError(StrCat(
        "data.validation.fraction ", fraction, " of ", items, " ", unit,
        " holds out ", held_out, "; want at least 1 and fewer than all"));
  }
  return held_out;
}

// First offset at or after `from` that follows a newline; the file's size where
// there is none.
absl::StatusOr<int64_t> NextLineStart(int fd, const InputFile& file,
                                      int64_t from) {
  std::vector<char> block(64 << 10);
  for (int64_t at = from - 1; at < file.bytes;) {
    const ssize_t got = pread(fd, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", file.display);
    if (got == 0) break;
    const void* newline =
        std::memchr(block.data(), '\n', static_cast<size_t>(got));
    if (newline != nullptr) {
      return at + (static_cast<const char*>(newline) - block.data()) + 1;
    }
    at += got;
  }
  return file.bytes;
}

// Last offset before `from` that follows a newline; 0 where there is none.
absl::StatusOr<int64_t> LastLineStart(int fd, const InputFile& file,
                                      int64_t from) {
  std::vector<char> block(64 << 10);
  for (int64_t end = from - 1; end > 0;) {
    const int64_t at =
        std::max<int64_t>(0, end - static_cast<int64_t>(block.size()));
    const ssize_t got =
        pread(fd, block.data(), static_cast<size_t>(end - at), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", file.display);
    if (got < end - at) break;
    const void* newline = memrchr(block.data(), '\n', static_cast<size_t>(got));
    if (newline != nullptr) {
      return at + (static_cast<const char*>(newline) - block.data()) + 1;
    }
    end = at;
  }
  return 0;
}

}  // namespace

DataPart DataPart::Nothing() { return Documents(0, 0, Side::kHeldOut); }

DataPart DataPart::Range(ItemRange range) {
  DataPart part;
  part.range_ = range;
  return part;
}

DataPart DataPart::Documents(int64_t documents, int64_t held_out, Side side) {
  DataPart part;
  part.documents_ = documents;
  part.held_out_ = held_out;
  part.side_ = side;
  return part;
}

bool DataPart::Contains(int64_t index) const {
  // A permutation sends exactly held_out_ documents below held_out_. An index
  // past the counted documents (the file grew) is caught by the reader.
  const bool held_out =
      index < documents_ &&
      SampleOrder(kHoldoutSeed, documents_).At(index) < held_out_;
  return held_out == (side_ == Side::kHeldOut);
}

absl::StatusOr<Holdout> HoldOutDocuments(int64_t items, double fraction) {
  ASSIGN_OR_RETURN(const int64_t held_out,
                   HeldOut(items, fraction, "documents"));
  return Holdout{
      DataPart::Documents(items, held_out, DataPart::Side::kKept),
      DataPart::Documents(items, held_out, DataPart::Side::kHeldOut)};
}

absl::StatusOr<Holdout> HoldOutTail(int64_t items, double fraction) {
  ASSIGN_OR_RETURN(const int64_t held_out, HeldOut(items, fraction, "tokens"));
  const int64_t cut = items - held_out;
  return Holdout{DataPart::Range({0, cut}), DataPart::Range({cut, items})};
}

absl::StatusOr<Holdout> HoldOutLines(const DataRoot& root, const Inputs& inputs,
                                     double fraction) {
  const InputFile& file = inputs.files.front();
  ASSIGN_OR_RETURN(const int64_t held_out,
                   HeldOut(file.bytes, fraction, "bytes"));
  ASSIGN_OR_RETURN(const OpenedFile opened, OpenInput(root, file));
  ASSIGN_OR_RETURN(int64_t cut,
                   NextLineStart(opened.fd.get(), file, file.bytes - held_out));
  if (cut == file.bytes) {
    ASSIGN_OR_RETURN(
        cut, LastLineStart(opened.fd.get(), file, file.bytes - held_out));
  }
  if (cut == 0) {
    return absl::InvalidArgumentError(
        StrCat("data.validation.fraction ", fraction, ": ", file.display,
               " is one line, and a text file is split between lines"));
  }
  return Holdout{DataPart::Range({0, cut}), DataPart::Range({cut, file.bytes})};
}

}  // namespace lockstep
