// FileDescriptor: owns one, closes it when it goes.
#ifndef LOCKSTEP_WORKER_AGENT_FILE_DESCRIPTOR_H_
#define LOCKSTEP_WORKER_AGENT_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace lockstep {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, kNone)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, kNone);
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  void Close() {
    if (valid()) close(std::exchange(fd_, kNone));
  }

 private:
  static constexpr int kNone = -1;  // as open(2) says it
  int fd_ = kNone;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_FILE_DESCRIPTOR_H_
