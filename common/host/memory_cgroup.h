// MemoryCgroup: what control groups (v1 or v2) say about this process's memory.
//
// The limit is the lowest of the process's group and its ancestors. OOM kills
// are those of the process's own group, which its ranks share; where no group
// counts them, those of the whole host.
//
// Threads: constant after construction; reads files.
#ifndef LOCKSTEP_COMMON_HOST_MEMORY_CGROUP_H_
#define LOCKSTEP_COMMON_HOST_MEMORY_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/host/control_group.h"

namespace lockstep {

class MemoryCgroup {
 public:
  // `root` stands before every absolute path; a folder in tests, else empty.
  static MemoryCgroup Find(const std::string& root);

  // Absent: there is no limit.
  std::optional<uint64_t> LimitBytes() const;
  // Processes that the OOM killer has killed so far; 0 if nothing counts them.
  int64_t OomKills() const;

 private:
  MemoryCgroup() = default;

  std::string root_;
  ControlGroup group_;
};

// The number after `key` and a space in text of lines "key number", as
// memory.events and memory.oom_control have them.
std::optional<int64_t> ReadCounter(const std::string& text,
                                   const std::string& key);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HOST_MEMORY_CGROUP_H_
