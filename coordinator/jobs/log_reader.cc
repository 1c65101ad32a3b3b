#include "coordinator/jobs/log_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
// A longer line is handed on in pieces.
constexpr size_t kMostLineBytes = 64 << 10;
// "2026-01-02T03:04:05.678901Z"
constexpr size_t kTimeBytes = 27;

// Where the last `lines` lines of the file begin.
int64_t TailOffset(int file, int64_t size, int64_t lines) {
  std::string chunk;
  int64_t end = size;
  // The line end of the last line doesn't count.
  int64_t seen = -1;
  while (end > 0) {
    const auto wanted =
        std::min<int64_t>(end, static_cast<int64_t>(kChunkBytes));
    chunk.resize(static_cast<size_t>(wanted));
    const ssize_t got = pread(file, chunk.data(), chunk.size(), end - wanted);
    if (got != wanted) return 0;
    for (int64_t i = wanted - 1; i >= 0; --i) {
      const bool last_byte = end - wanted + i == size - 1;
      if (chunk[static_cast<size_t>(i)] == '\n') {
        ++seen;
      } else if (last_byte) {
        seen = 0;  // The last line has no end yet.
      }
      if (seen == lines) return end - wanted + i + 1;
    }
    end -= wanted;
  }
  return 0;
}

// The time at the start of a text or JSON log line; empty if there is none.
std::string_view TimeOf(std::string_view line) {
  constexpr std::string_view kJson = "{\"time\":\"";
  if (line.substr(0, kJson.size()) == kJson) line.remove_prefix(kJson.size());
  if (line.size() < kTimeBytes || line[4] != '-' || line[10] != 'T' ||
      line[kTimeBytes - 1] != 'Z') {
    return {};
  }
  return line.substr(0, kTimeBytes);
}

void MergeByTime(std::vector<v1::LogLine>& lines) {
  // Each line's key is its own time or that of the line before it.
  std::vector<std::pair<std::string, size_t>> keys;
  std::string time;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 && lines[i].rank() != lines[i - 1].rank()) time.clear();
    const std::string_view own = TimeOf(lines[i].line());
    if (!own.empty()) time = std::string(own);
    keys.emplace_back(time, i);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  std::vector<v1::LogLine> merged;
  merged.reserve(lines.size());
  for (const auto& [key, i] : keys) merged.push_back(std::move(lines[i]));
  lines = std::move(merged);
}

}  // namespace

LogReader::LogReader(std::string folder, std::optional<int64_t> rank,
                     int64_t tail)
    : folder_(std::move(folder)), rank_(rank), tail_(tail) {}

void LogReader::FindFiles() {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder_, error);
  while (!error && entries != std::filesystem::directory_iterator()) {
    const std::string name = entries->path().filename().string();
    absl::string_view digits = name;
    int64_t rank = 0;
    if (absl::ConsumePrefix(&digits, "rank-") &&
        absl::ConsumeSuffix(&digits, ".log") &&
        absl::SimpleAtoi(digits, &rank) &&
        (!rank_.has_value() || rank == *rank_)) {
      File file;
      file.path = entries->path().string();
      file.offset = -1;
      files_.emplace(rank, std::move(file));
    }
    entries.increment(error);
  }
}

void LogReader::ReadMore(int64_t rank, File& file,
                         std::vector<v1::LogLine>& lines) {
  const int descriptor =
      open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  if (file.offset < 0) {
    const int64_t size = lseek(descriptor, 0, SEEK_END);
    file.offset = tail_ > 0 ? TailOffset(descriptor, size, tail_) : 0;
  }
  std::string chunk(kChunkBytes, '\0');
  ssize_t got;
  do {
    got = pread(descriptor, chunk.data(), chunk.size(), file.offset);
  } while (got < 0 && errno == EINTR);
  close(descriptor);
  if (got <= 0) return;
  file.offset += got;
  file.partial.append(chunk, 0, static_cast<size_t>(got));
  size_t begin = 0;
  for (;;) {
    size_t end = file.partial.find('\n', begin);
    size_t next = end + 1;
    if (end == std::string::npos) {
      if (file.partial.size() - begin < kMostLineBytes) break;
      end = next = begin + kMostLineBytes;
    }
    v1::LogLine line;
    line.set_rank(rank);
    line.set_line(file.partial.substr(begin, end - begin));
    lines.push_back(std::move(line));
    begin = next;
  }
  file.partial.erase(0, begin);
}

std::vector<v1::LogLine> LogReader::Poll() {
  FindFiles();
  std::vector<v1::LogLine> lines;
  for (auto& [rank, file] : files_) ReadMore(rank, file, lines);
  if (files_.size() > 1) MergeByTime(lines);
  return lines;
}

std::vector<v1::LogLine> LogReader::Finish() {
  std::vector<v1::LogLine> lines;
  for (auto& [rank, file] : files_) {
    if (file.partial.empty()) continue;
    v1::LogLine line;
    line.set_rank(rank);
    line.set_line(std::exchange(file.partial, ""));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace lockstep
