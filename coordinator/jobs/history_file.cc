#include "coordinator/jobs/history_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr std::string_view kHeader = "LKHIST1\n";
// Length of the payload, and checksum of the numbers and the payload.
constexpr size_t kPrefixBytes = 4 + 4;
// Generation and message sequence.
constexpr size_t kNumbersBytes = 8 + 8;
// Larger than any message that gRPC lets through.
constexpr uint32_t kMostPayloadBytes = 32 << 20;
constexpr size_t kReadBytes = 256 << 10;

template <typename T>
void PutLittleEndian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>((static_cast<uint64_t>(value) >> (8 * i)) & 0xFF);
  }
}

template <typename T>
T GetLittleEndian(const char* from) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(from[i]))
             << (8 * i);
  }
  return static_cast<T>(value);
}

uint32_t Checksum(std::string_view checked) {
  return static_cast<uint32_t>(XXH3_64bits(checked.data(), checked.size()));
}

absl::Status FileError(const std::string& path, const char* what) {
  const int error = errno;
  const std::string text =
      absl::StrCat(path, ": ", what, ": ", strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::UnavailableError(text);
}

// Reads a file from front to back, a chunk at a time.
class ChunkReader {
 public:
  ChunkReader(int file, int64_t offset, int64_t limit)
      : file_(file), next_(offset), limit_(limit) {}

  // The next `bytes` bytes, or nothing if the file ends before.
  const char* Take(size_t bytes) {
    while (buffer_.size() - used_ < bytes) {
      buffer_.erase(0, used_);
      used_ = 0;
      const int64_t left = limit_ - next_;
      if (left <= 0) return nullptr;
      const size_t wanted = std::min<size_t>(std::max(kReadBytes, bytes),
                                             static_cast<size_t>(left));
      const size_t before = buffer_.size();
      buffer_.resize(before + wanted);
      ssize_t got;
      do {
        got = pread(file_, buffer_.data() + before, wanted, next_);
      } while (got < 0 && errno == EINTR);
      buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
      if (got <= 0) return nullptr;
      next_ += got;
    }
    used_ += bytes;
    return buffer_.data() + used_ - bytes;
  }

 private:
  const int file_;
  int64_t next_;
  const int64_t limit_;
  std::string buffer_;
  size_t used_ = 0;
};

}  // namespace

std::string EncodeHistoryRecord(const HistoryRecord& record) {
  const std::string payload = record.update.SerializeAsString();
  std::string checked;
  PutLittleEndian(checked, record.generation);
  PutLittleEndian(checked, record.message_sequence);
  checked += payload;
  std::string frame;
  PutLittleEndian(frame, static_cast<uint32_t>(payload.size()));
  PutLittleEndian(frame, Checksum(checked));
  return frame + checked;
}

std::string_view HistoryFileHeader() { return kHeader; }

absl::StatusOr<int64_t> ReadHistoryFile(
    const std::string& path, int64_t offset, int64_t limit,
    const std::function<bool(HistoryRecord, int64_t)>& take) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileError(path, "can't be opened");
  struct Closer {
    int file;
    ~Closer() { close(file); }
  } closer{file};
  ChunkReader reader(file, offset, limit);
  int64_t end = offset;
  if (offset == 0) {
    const char* header = reader.Take(kHeader.size());
    // Torn while it was made: as good as new.
    if (header == nullptr) return 0;
    if (std::string_view(header, kHeader.size()) != kHeader) {
      return absl::DataLossError(absl::StrCat(path, ": is no job history"));
    }
    end = static_cast<int64_t>(kHeader.size());
  }
  for (;;) {
    const char* prefix = reader.Take(kPrefixBytes);
    if (prefix == nullptr) return end;
    const auto length = GetLittleEndian<uint32_t>(prefix);
    const auto checksum = GetLittleEndian<uint32_t>(prefix + 4);
    if (length > kMostPayloadBytes) return end;
    const char* checked = reader.Take(kNumbersBytes + length);
    if (checked == nullptr) return end;
    if (Checksum({checked, kNumbersBytes + length}) != checksum) return end;
    HistoryRecord record;
    record.generation = GetLittleEndian<int64_t>(checked);
    record.message_sequence = GetLittleEndian<int64_t>(checked + 8);
    const char* payload = checked + kNumbersBytes;
    if (!record.update.ParseFromArray(payload, static_cast<int>(length))) {
      return end;
    }
    const int64_t begin = end;
    end += static_cast<int64_t>(kPrefixBytes + kNumbersBytes + length);
    if (!take(std::move(record), begin)) return end;
  }
}

absl::StatusOr<HistoryAppender> HistoryAppender::Open(const std::string& path,
                                                      int64_t bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return FileError(path, "can't be opened");
  HistoryAppender appender(file, bytes, path);
  if (ftruncate(file, bytes) != 0) return FileError(path, "can't be cut");
  return appender;
}

HistoryAppender::HistoryAppender(int file, int64_t bytes, std::string path)
    : file_(file), bytes_(bytes), path_(std::move(path)) {}

HistoryAppender::HistoryAppender(HistoryAppender&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_),
      path_(std::move(other.path_)) {}

HistoryAppender& HistoryAppender::operator=(HistoryAppender&& other) noexcept {
  std::swap(file_, other.file_);
  bytes_ = other.bytes_;
  path_ = std::move(other.path_);
  return *this;
}

HistoryAppender::~HistoryAppender() {
  if (file_ >= 0) close(file_);
}

absl::Status HistoryAppender::Append(std::string_view frame) {
  size_t done = 0;
  while (done < frame.size()) {
    const ssize_t wrote =
        pwrite(file_, frame.data() + done, frame.size() - done,
               bytes_ + static_cast<int64_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const absl::Status status = FileError(path_, "can't be written");
      // A torn frame would hide those behind it. If cutting fails too, the
      // next append overwrites it.
      if (ftruncate(file_, bytes_) != 0) return status;
      return status;
    }
    done += static_cast<size_t>(wrote);
  }
  bytes_ += static_cast<int64_t>(frame.size());
  return absl::OkStatus();
}

}  // namespace lockstep
