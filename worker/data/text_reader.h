// Text files: one document each, given in pieces.
#ifndef LOCKSTEP_WORKER_DATA_TEXT_READER_H_
#define LOCKSTEP_WORKER_DATA_TEXT_READER_H_

#include "absl/status/status.h"
#include "worker/data/block_reader.h"
#include "worker/data/document_reader.h"

namespace lockstep {

// Visits what `reader` has left as one document.
absl::Status ReadText(BlockReader& reader, DocumentVisitor& visitor);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_TEXT_READER_H_
