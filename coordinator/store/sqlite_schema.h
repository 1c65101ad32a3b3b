// The tables of the SQLite job store (docs/formats/job_store.md).
#ifndef LOCKSTEP_COORDINATOR_STORE_SQLITE_SCHEMA_H_
#define LOCKSTEP_COORDINATOR_STORE_SQLITE_SCHEMA_H_

#include "absl/status/status.h"
#include "coordinator/store/sqlite_database.h"

namespace lockstep {

// Takes the exclusive lock, sets the pragmas that durability rests on, makes
// the tables in a new file and checks those of an old one.
//   FAILED_PRECONDITION: another coordinator has it, or a newer version wrote
//     it. DATA_LOSS: damaged, or some other program's database.
absl::Status PrepareSchema(SqliteDatabase& database);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_STORE_SQLITE_SCHEMA_H_
