// SqliteDatabase and SqliteStatement: SQLite's C interface with Status in place
// of result codes. Nothing here knows about jobs.
//
// Threads: not synchronised; one thread at a time.
// Errors: RESOURCE_EXHAUSTED full disk; DATA_LOSS damaged or no database;
// FAILED_PRECONDITION locked by another, or can't be opened; ALREADY_EXISTS a
// constraint; INVALID_ARGUMENT a value that is too large or of a wrong type;
// UNAVAILABLE an input or output error; INTERNAL the rest. Messages carry the
// file and SQLite's own words.
#ifndef LOCKSTEP_COORDINATOR_STORE_SQLITE_DATABASE_H_
#define LOCKSTEP_COORDINATOR_STORE_SQLITE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace lockstep {

class SqliteStatement {
 public:
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&&) = delete;
  ~SqliteStatement();

  // Parameters count from 1; text and blobs are copied.
  SqliteStatement& BindInt(int parameter, int64_t value);
  SqliteStatement& BindText(int parameter, std::string_view value);
  SqliteStatement& BindBlob(int parameter, std::string_view value);
  SqliteStatement& BindNull(int parameter);

  // True: there is a row. Also reports what the Binds met with.
  absl::StatusOr<bool> Step();
  // Runs to the end, for statements without rows, and makes it ready for the
  // next use.
  absl::Status Run();

  // Columns of the row, counting from 0. A value of another type is DATA_LOSS.
  absl::StatusOr<int64_t> Int(int column) const;
  absl::StatusOr<std::string> Text(int column) const;
  absl::StatusOr<std::string> Blob(int column) const;
  bool IsNull(int column) const;

 private:
  friend class SqliteDatabase;
  SqliteStatement(sqlite3* database, sqlite3_stmt* statement,
                  const std::string& path);
  absl::Status Mistyped(int column, const char* want) const;

  sqlite3* database_;
  sqlite3_stmt* statement_;
  const std::string& path_;  // the database's
  int bind_error_ = 0;
};

class SqliteDatabase {
 public:
  // Opens or makes the file, readable by its owner only.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(
      const std::string& path);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  // One or more statements without parameters; rows are dropped.
  absl::Status Execute(const std::string& sql);
  // Statements must go before the database does.
  absl::StatusOr<SqliteStatement> Prepare(const std::string& sql);
  // The first column of the only row.
  absl::StatusOr<int64_t> QueryInt(const std::string& sql);
  absl::StatusOr<std::string> QueryText(const std::string& sql);

  const std::string& path() const { return path_; }

 private:
  SqliteDatabase(sqlite3* database, std::string path);

  sqlite3* const database_;
  const std::string path_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_STORE_SQLITE_DATABASE_H_
