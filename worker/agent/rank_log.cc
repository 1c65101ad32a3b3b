#include "worker/agent/rank_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace lockstep {
namespace {

constexpr size_t kTailBytes = 4096;
constexpr size_t kLastLineBytes = 400;
constexpr int kPipeBytes = 1 << 20;

absl::Status FileError(const std::string& path, int error) {
  const std::string text =
      absl::StrCat("log ", path, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(text)
                                            : absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankLog>> RankLog::Open(const std::string& path,
                                                       int64_t cap_bytes) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      error);
  if (error) return FileError(path, error.value());
  FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  struct stat info;
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return FileError(path, errno);
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FileError("pipe", errno);
  FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  // Only the reader must never block: a rank that prints faster than the disk
  // writes shall wait. A larger pipe is a kindness, not a need.
  fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  fcntl(write_end.get(), F_SETPIPE_SZ, kPipeBytes);
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return FileError("eventfd", errno);
  return std::unique_ptr<RankLog>(
      new RankLog(std::move(file), std::move(read_end), std::move(write_end),
                  std::move(stop), cap_bytes, info.st_size));
}

RankLog::RankLog(FileDescriptor file, FileDescriptor read_end,
                 FileDescriptor write_end, FileDescriptor stop,
                 int64_t cap_bytes, int64_t written_bytes)
    : file_(std::move(file)),
      read_end_(std::move(read_end)),
      write_end_(std::move(write_end)),
      stop_(std::move(stop)),
      cap_bytes_(cap_bytes),
      written_bytes_(written_bytes),
      thread_([this] { Pump(); }) {}

RankLog::~RankLog() { Drain(); }

void RankLog::Drain() {
  absl::MutexLock lock(&join_mutex_);
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

void RankLog::Pump() {
  char buffer[65536];
  pollfd polls[2] = {{read_end_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  for (;;) {
    // No deadline: the pipe's end or Drain ends it.
    if (poll(polls, 2, -1) < 0 && errno != EINTR) return;
    const bool stopping = polls[1].revents != 0;
    ssize_t got;
    while ((got = read(read_end_.get(), buffer, sizeof(buffer))) > 0) {
      Append(buffer, static_cast<size_t>(got));
    }
    const bool ended = got == 0;
    if (ended || stopping) return;
  }
}

void RankLog::Append(const char* data, size_t size) {
  {
    absl::MutexLock lock(&mutex_);
    tail_.append(data, size);
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
  const auto write_all = [this](const char* bytes, size_t count) {
    while (count > 0) {
      const ssize_t put = write(file_.get(), bytes, count);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return;  // A full disk; the rank itself will say so.
      written_bytes_ += put;
      bytes += put;
      count -= static_cast<size_t>(put);
    }
  };
  if (capped_) return;
  const int64_t room = std::max<int64_t>(0, cap_bytes_ - written_bytes_);
  write_all(data, std::min(size, static_cast<size_t>(room)));
  if (size > static_cast<size_t>(room)) {
    const std::string line =
        absl::StrCat("\n[log cut here, at its cap of ", cap_bytes_,
                     " bytes; later lines are dropped]\n");
    write_all(line.data(), line.size());
    capped_ = true;
  }
}

std::string RankLog::LastLine() const {
  absl::MutexLock lock(&mutex_);
  size_t end = tail_.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  ++end;
  const size_t newline = tail_.rfind('\n', end - 1);
  size_t begin = newline == std::string::npos ? 0 : newline + 1;
  begin = std::max(begin, end - std::min(end, kLastLineBytes));
  return tail_.substr(begin, end - begin);
}

}  // namespace lockstep
