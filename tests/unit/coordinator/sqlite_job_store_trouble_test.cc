// A store that can't write for a while: what was taken on waits, and is said.
#include <sqlite3.h>

#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "coordinator/store/sqlite_job_store.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr size_t kLargeBytes = 4 << 20;

StoreChange EventChange(std::string message) {
  StoreChange change;
  v1::Event& event = change.events.emplace_back();
  event.set_job("a");
  event.set_type("warning");
  event.set_message(std::move(message));
  return change;
}

TEST(SqliteJobStoreTroubleTest, ChangeThatFindsNoMemoryIsStoredLater) {
  const TempDir dir;
  auto store = SqliteJobStore::Open({.path = dir.File("state.db"),
                                     .retry_interval = absl::Milliseconds(1),
                                     .on_commit = nullptr});
  ASSERT_THAT(store, IsOk());
  (*store)->Enqueue(EventChange("small"));
  ASSERT_THAT((*store)->WaitUntilStored(kPatience), IsOk());
  // SQLite's own limit, of the whole process.
  sqlite3_hard_heap_limit64(sqlite3_memory_used() +
                            static_cast<sqlite3_int64>(kLargeBytes / 4));
  const auto lift = absl::MakeCleanup([] { sqlite3_hard_heap_limit64(0); });
  (*store)->Enqueue(EventChange(std::string(kLargeBytes, 'x')));
  const auto await_health = [&](bool ok) {
    const absl::Time deadline = absl::Now() + kPatience;
    while ((*store)->health().ok() != ok && absl::Now() < deadline) {
    }
    return (*store)->health();
  };
  EXPECT_THAT(await_health(false), StatusIs(absl::StatusCode::kInternal,
                                            HasSubstr("out of memory")));
  sqlite3_hard_heap_limit64(0);
  ASSERT_THAT((*store)->WaitUntilStored(kPatience), IsOk());
  EXPECT_THAT(await_health(true), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto events, (*store)->Events("a", 10));
  EXPECT_THAT(events, SizeIs(2));
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
