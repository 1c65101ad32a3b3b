// UniqueFd: an owned file descriptor.
#ifndef LOCKSTEP_COMMON_FILES_UNIQUE_FD_H_
#define LOCKSTEP_COMMON_FILES_UNIQUE_FD_H_

#include <utility>

namespace lockstep {

// Move-only; closes what it owns. An invalid one (-1) owns nothing.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Gives the descriptor away.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FILES_UNIQUE_FD_H_
