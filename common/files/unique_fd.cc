#include "common/files/unique_fd.h"

#include <unistd.h>

namespace lockstep {

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace lockstep
