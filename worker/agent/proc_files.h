// What /proc says about processes.
#ifndef LOCKSTEP_WORKER_AGENT_PROC_FILES_H_
#define LOCKSTEP_WORKER_AGENT_PROC_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace lockstep {

// State of a process as /proc/PID/stat has it: 'R' runs, 'S' sleeps, 'D' waits
// for a disk, 'T' is stopped, 'Z' is dead. Absent: there is no such process.
std::optional<char> ProcessState(pid_t pid);

// Resident bytes of a process; 0 if there is no such process.
uint64_t ResidentBytes(pid_t pid);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_PROC_FILES_H_
