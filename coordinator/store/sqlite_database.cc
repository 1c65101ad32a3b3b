#include "coordinator/store/sqlite_database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::Status SqliteError(int code, sqlite3* database, const std::string& path) {
  const std::string text = absl::StrCat(
      path, ": ",
      database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code));
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(text, " (is the disk full?)"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": is in use by another coordinator"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(
          text, "; it is damaged or no job store: move it away or restore it"));
    case SQLITE_CONSTRAINT:
      return absl::AlreadyExistsError(text);
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      return absl::InvalidArgumentError(text);
    case SQLITE_IOERR:
      // A full disk can show itself as a failed write too.
      if (database != nullptr && (sqlite3_system_errno(database) == ENOSPC ||
                                  sqlite3_system_errno(database) == EDQUOT)) {
        return absl::ResourceExhaustedError(
            absl::StrCat(text, " (the disk is full)"));
      }
      return absl::UnavailableError(text);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace

SqliteStatement::SqliteStatement(sqlite3* database, sqlite3_stmt* statement,
                                 const std::string& path)
    : database_(database), statement_(statement), path_(path) {}

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      path_(other.path_),
      bind_error_(other.bind_error_) {}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

SqliteStatement& SqliteStatement::BindInt(int parameter, int64_t value) {
  const int code = sqlite3_bind_int64(statement_, parameter, value);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

SqliteStatement& SqliteStatement::BindText(int parameter,
                                           std::string_view value) {
  const int code =
      sqlite3_bind_text64(statement_, parameter, value.data(), value.size(),
                          SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

SqliteStatement& SqliteStatement::BindBlob(int parameter,
                                           std::string_view value) {
  // A null pointer would bind NULL.
  const char* data = value.empty() ? "" : value.data();
  const int code = sqlite3_bind_blob64(statement_, parameter, data,
                                       value.size(), SQLITE_TRANSIENT);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

SqliteStatement& SqliteStatement::BindNull(int parameter) {
  const int code = sqlite3_bind_null(statement_, parameter);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (bind_error_ != 0) {
    // Of this use of the statement only; by now the database's own words are
    // about something else.
    return SqliteError(std::exchange(bind_error_, 0), nullptr, path_);
  }
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return SqliteError(code, database_, path_);
}

absl::Status SqliteStatement::Run() {
  absl::StatusOr<bool> row = Step();
  while (row.ok() && *row) row = Step();
  sqlite3_reset(statement_);
  return row.status();
}

absl::Status SqliteStatement::Mistyped(int column, const char* want) const {
  return absl::DataLossError(
      absl::StrCat(path_, ": column ", sqlite3_column_name(statement_, column),
                   " of \"", sqlite3_sql(statement_), "\" is no ", want));
}

absl::StatusOr<int64_t> SqliteStatement::Int(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) {
    return Mistyped(column, "integer");
  }
  return sqlite3_column_int64(statement_, column);
}

absl::StatusOr<std::string> SqliteStatement::Text(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_TEXT) {
    return Mistyped(column, "text");
  }
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return SqliteError(SQLITE_NOMEM, database_, path_);
  return std::string(
      reinterpret_cast<const char*>(text),
      static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

absl::StatusOr<std::string> SqliteStatement::Blob(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_BLOB) {
    return Mistyped(column, "blob");
  }
  const void* data = sqlite3_column_blob(statement_, column);
  const int bytes = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || bytes <= 0) return std::string();
  return std::string(static_cast<const char*>(data),
                     static_cast<size_t>(bytes));
}

bool SqliteStatement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(
    const std::string& path) {
  // SQLite gives its log the mode of the database, so make that ourselves.
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": can't be opened: ", strerror(errno)));
  }
  struct stat status {};
  const bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const bool owned = regular && fchmod(file, 0600) == 0;
  close(file);
  if (!regular) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is no regular file"));
  }
  if (!owned) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": belongs to another user"));
  }
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr);
  auto opened =
      std::unique_ptr<SqliteDatabase>(new SqliteDatabase(database, path));
  if (code != SQLITE_OK) return SqliteError(code, database, path);
  sqlite3_extended_result_codes(database, 1);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  return opened;
}

SqliteDatabase::SqliteDatabase(sqlite3* database, std::string path)
    : database_(database), path_(std::move(path)) {}

SqliteDatabase::~SqliteDatabase() { sqlite3_close(database_); }

absl::Status SqliteDatabase::Execute(const std::string& sql) {
  const int code =
      sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus()
                           : SqliteError(code, database_, path_);
}

absl::StatusOr<SqliteStatement> SqliteDatabase::Prepare(
    const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(database_, sql.c_str(), static_cast<int>(sql.size()),
                         &statement, nullptr);
  if (code != SQLITE_OK) return SqliteError(code, database_, path_);
  return SqliteStatement(database_, statement, path_);
}

absl::StatusOr<int64_t> SqliteDatabase::QueryInt(const std::string& sql) {
  ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::DataLossError(absl::StrCat(path_, ": no ", sql));
  return statement.Int(0);
}

absl::StatusOr<std::string> SqliteDatabase::QueryText(const std::string& sql) {
  ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::DataLossError(absl::StrCat(path_, ": no ", sql));
  return statement.Text(0);
}

}  // namespace lockstep
