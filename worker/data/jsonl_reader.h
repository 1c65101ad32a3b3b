// JSON lines: one object a line, each a document. Blank lines are skipped.
#ifndef LOCKSTEP_WORKER_DATA_JSONL_READER_H_
#define LOCKSTEP_WORKER_DATA_JSONL_READER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/data/block_reader.h"
#include "worker/data/document_reader.h"

namespace lockstep {

// Visits the rows of `part`; lines of others are not parsed. `document` is the
// number of the first row, and afterwards of the next file's first. A label may
// be a string, a number or a boolean; other keys may hold anything.
absl::Status ReadJsonl(BlockReader reader, const DocumentFields& fields,
                       const DataPart& part, int64_t& document,
                       DocumentVisitor& visitor);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_JSONL_READER_H_
