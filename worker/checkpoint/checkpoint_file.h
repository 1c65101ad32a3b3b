// How the files of a checkpoint are made.
#ifndef LOCKSTEP_WORKER_CHECKPOINT_CHECKPOINT_FILE_H_
#define LOCKSTEP_WORKER_CHECKPOINT_CHECKPOINT_FILE_H_

#include "common/files/file_writer.h"

namespace lockstep {

// A torn file of an earlier try gives way, and others may read the new one.
inline constexpr FileWriterOptions kCheckpointFile = {
    .if_present = FileWriterOptions::IfPresent::kReplace, .mode = 0644};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CHECKPOINT_CHECKPOINT_FILE_H_
