#include "coordinator/store/sqlite_job_store.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/log.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestJob;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Seconds(30);

std::unique_ptr<SqliteJobStore> OpenStore(const std::string& path) {
  auto store = SqliteJobStore::Open({.path = path, .on_commit = nullptr});
  CHECK(store.ok()) << store.status();
  return *std::move(store);
}

absl::Status WriteAndWait(JobStore& store, StoreChange change) {
  absl::Notification done;
  absl::Status status;
  store.Write(std::move(change), [&](absl::Status result) {
    status = std::move(result);
    done.Notify();
  });
  CHECK(done.WaitForNotificationWithTimeout(kPatience)) << "no answer";
  return status;
}

StoreChange JobChange(const std::string& id, int64_t order) {
  StoreChange change;
  change.jobs.push_back(TestJob(id));
  change.jobs.back().submit_order = order;
  return change;
}

// Runs SQL on the closed file, as somebody else's hand would.
void Tamper(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  char* error = nullptr;
  ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error),
            SQLITE_OK)
      << error;
  sqlite3_close(database);
}

TEST(SqliteJobStoreTest, ReopenedStoreHasEveryRecord) {
  const TempDir dir;
  JobRecord job = TestJob("tiny-abcd", 2);
  job.submit_order = 7;
  job.state = v1::JOB_STATE_RUNNING;
  job.reason = "running on w0";
  job.generation = 3;
  job.submitted = absl::FromUnixMicros(1'700'000'000'123'456);
  job.started = absl::FromUnixMicros(1'700'000'001'000'000);
  job.steps = 100;
  job.devices_at_most = true;
  job.resume_job = "old-1234";
  job.resume_checkpoint = "/jobs/old-1234/step-10.g1";
  job.cancel_reason = "cancelled by user";
  AttemptRecord attempt;
  attempt.job = job.id;
  attempt.generation = 3;
  attempt.cause = v1::CAUSE_HANG;
  attempt.first_rank = 1;
  attempt.worker = "w1";
  attempt.message = "no progress for 15 s";
  attempt.layout.mutable_layout()->set_dp(2);
  attempt.facts.set_parameters(1234);
  attempt.secret = "secret";
  attempt.ranks = {{"w0", "i0", "cpu:0", 1024, true, true},
                   {"w1", "i1", "cpu:0", 2048, false}};
  CheckpointRecord checkpoint;
  checkpoint.job = job.id;
  checkpoint.generation = 3;
  checkpoint.step = 50;
  checkpoint.path = "/jobs/tiny-abcd/step-50.g3";
  checkpoint.manifest_hash = "beef";
  checkpoint.bytes = 4096;
  MemoryRecord memory{job.id, 3, {}};
  memory.report.set_rank(1);
  memory.report.set_peak_bytes(77);
  StoreChange change;
  change.jobs.push_back(job);
  change.attempts.push_back(attempt);
  change.checkpoints.push_back(checkpoint);
  change.memory.push_back(memory);
  change.rendezvous.push_back({job.id, 3, "key", std::string("a\0b", 3)});
  {
    const auto store = OpenStore(dir.File("state.db"));
    store->Enqueue(change);
    ASSERT_THAT(store->WaitUntilStored(kPatience), IsOk());
  }
  const auto store = OpenStore(dir.File("state.db"));
  ASSERT_OK_AND_ASSIGN(const StoredState state, store->Load());
  ASSERT_THAT(state.jobs, SizeIs(1));
  const JobRecord& read = state.jobs[0];
  EXPECT_EQ(read.id, job.id);
  EXPECT_EQ(read.request_id, job.request_id);
  EXPECT_EQ(read.submit_order, 7);
  EXPECT_TRUE(MessageDifferencer::Equals(read.spec, job.spec));
  EXPECT_EQ(read.state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(read.reason, job.reason);
  EXPECT_EQ(read.generation, 3);
  EXPECT_EQ(read.submitted, job.submitted);
  EXPECT_EQ(read.started, job.started);
  EXPECT_FALSE(read.ended.has_value());
  EXPECT_EQ(read.steps, 100);
  EXPECT_EQ(read.devices, 2);
  EXPECT_TRUE(read.devices_at_most);
  EXPECT_EQ(read.resume_job, job.resume_job);
  EXPECT_EQ(read.resume_checkpoint, job.resume_checkpoint);
  EXPECT_EQ(read.cancel_reason, job.cancel_reason);
  ASSERT_THAT(state.attempts, SizeIs(1));
  EXPECT_EQ(state.attempts[0].cause, v1::CAUSE_HANG);
  EXPECT_EQ(state.attempts[0].first_rank, 1);
  EXPECT_EQ(state.attempts[0].layout.layout().dp(), 2);
  EXPECT_EQ(state.attempts[0].facts.parameters(), 1234);
  EXPECT_EQ(state.attempts[0].secret, "secret");
  ASSERT_THAT(state.attempts[0].ranks, SizeIs(2));
  EXPECT_EQ(state.attempts[0].ranks[1].worker, "w1");
  EXPECT_EQ(state.attempts[0].ranks[1].memory_limit_bytes, 2048u);
  EXPECT_TRUE(state.attempts[0].ranks[0].exited);
  EXPECT_TRUE(state.attempts[0].ranks[0].ended_badly);
  EXPECT_FALSE(state.attempts[0].ranks[1].exited);
  ASSERT_THAT(state.checkpoints, SizeIs(1));
  EXPECT_EQ(state.checkpoints[0].path, checkpoint.path);
  EXPECT_EQ(state.checkpoints[0].bytes, 4096u);
  ASSERT_THAT(state.memory, SizeIs(1));
  EXPECT_EQ(state.memory[0].report.peak_bytes(), 77u);
  ASSERT_THAT(state.rendezvous, SizeIs(1));
  EXPECT_EQ(state.rendezvous[0].value, std::string("a\0b", 3));
}

TEST(SqliteJobStoreTest, EventsComeBackInOrderAndByJob) {
  const TempDir dir;
  const auto store = OpenStore(dir.File("state.db"));
  StoreChange change;
  for (int i = 0; i < 6; ++i) {
    v1::Event event;
    event.set_job(i % 2 == 0 ? "even" : "odd");
    event.set_type("warning");
    event.set_message(std::to_string(i));
    event.mutable_time()->set_seconds(i);
    change.events.push_back(event);
  }
  store->Enqueue(change);
  ASSERT_THAT(store->WaitUntilStored(kPatience), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto odd, store->Events("odd", 2));
  ASSERT_THAT(odd, SizeIs(2));
  EXPECT_EQ(odd[0].message(), "3");
  EXPECT_EQ(odd[1].message(), "5");
  EXPECT_EQ(odd[1].time().seconds(), 5);
  ASSERT_OK_AND_ASSIGN(const auto all, store->Events("", 100));
  EXPECT_THAT(all, SizeIs(6));
}

TEST(SqliteJobStoreTest, DeletedJobLeavesNoRow) {
  const TempDir dir;
  const auto store = OpenStore(dir.File("state.db"));
  StoreChange change = JobChange("a", 1);
  change.checkpoints.push_back({"a", 1, 1, "/a/step-1.g1", "h", 1, {}});
  v1::Event event;
  event.set_job("a");
  change.events.push_back(event);
  store->Enqueue(change);
  store->Enqueue(JobChange("b", 2));
  StoreChange deletion;
  deletion.deleted_jobs.push_back("a");
  ASSERT_THAT(WriteAndWait(*store, deletion), IsOk());
  ASSERT_OK_AND_ASSIGN(const StoredState state, store->Load());
  ASSERT_THAT(state.jobs, SizeIs(1));
  EXPECT_EQ(state.jobs[0].id, "b");
  EXPECT_THAT(state.checkpoints, SizeIs(0));
  ASSERT_OK_AND_ASSIGN(const auto events, store->Events("", 10));
  EXPECT_THAT(events, SizeIs(0));
}

TEST(SqliteJobStoreTest, TakenRequestIdIsRefusedAndTheRestIsStored) {
  const TempDir dir;
  const auto store = OpenStore(dir.File("state.db"));
  StoreChange twice = JobChange("b", 2);
  twice.jobs[0].request_id = TestJob("a").request_id;
  store->Enqueue(JobChange("a", 1));
  EXPECT_THAT(WriteAndWait(*store, twice),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(WriteAndWait(*store, JobChange("c", 3)), IsOk());
  ASSERT_OK_AND_ASSIGN(const StoredState state, store->Load());
  ASSERT_THAT(state.jobs, SizeIs(2));
  EXPECT_EQ(state.jobs[0].id, "a");
  EXPECT_EQ(state.jobs[1].id, "c");
}

TEST(SqliteJobStoreTest, FileIsForItsOwnerOnly) {
  const TempDir dir;
  const std::string path = dir.Write("state.db", "");
  chmod(path.c_str(), 0666);
  const auto store = OpenStore(path);
  store->Enqueue(JobChange("a", 1));
  ASSERT_THAT(store->WaitUntilStored(kPatience), IsOk());
  for (const char* name : {"state.db", "state.db-wal"}) {
    struct stat status {};
    ASSERT_EQ(stat(dir.File(name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_mode & 0777, 0600) << name;
  }
}

// Runs `work` in a forked process and returns its exit code.
template <typename Work>
int InChild(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SqliteJobStoreTest, SecondCoordinatorRefusesToStart) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  // Before a thread exists here: the child is the second one.
  int ready[2];
  int result[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(result), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    if (read(ready[0], &byte, 1) != 1) _exit(1);
    const auto second = SqliteJobStore::Open({.path = path, .on_commit = {}});
    const std::string message(second.status().message());
    _exit(write(result[1], message.data(), message.size()) < 0);
  }
  {
    const auto store = OpenStore(path);
    ASSERT_EQ(write(ready[1], "x", 1), 1);
    char message[512] = {};
    ASSERT_GT(read(result[0], message, sizeof(message) - 1), 0);
    EXPECT_THAT(std::string(message), HasSubstr("another coordinator"));
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(SqliteJobStore::Open({.path = path, .on_commit = {}}), IsOk());
}

TEST(SqliteJobStoreTest, AcknowledgedJobsSurviveSigkill) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  int acknowledged[2];
  ASSERT_EQ(pipe(acknowledged), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Four writers, so that commits are shared.
    const auto store = OpenStore(path);
    std::vector<std::thread> writers;
    for (int w = 0; w < 4; ++w) {
      writers.emplace_back([&, w] {
        for (int i = 0;; ++i) {
          const int number = i * 4 + w;
          if (!WriteAndWait(*store, JobChange(std::to_string(number), number))
                   .ok()) {
            _exit(1);
          }
          if (write(acknowledged[1], &number, sizeof(number)) < 0) _exit(1);
        }
      });
    }
    writers[0].join();
  }
  close(acknowledged[1]);
  std::set<std::string> seen;
  int number = 0;
  while (seen.size() < 60 &&
         read(acknowledged[0], &number, sizeof(number)) == sizeof(number)) {
    seen.insert(std::to_string(number));
  }
  kill(child, SIGKILL);
  while (read(acknowledged[0], &number, sizeof(number)) == sizeof(number)) {
    seen.insert(std::to_string(number));
  }
  waitpid(child, nullptr, 0);
  ASSERT_GE(seen.size(), 60u);
  const auto store = OpenStore(path);
  ASSERT_OK_AND_ASSIGN(const StoredState state, store->Load());
  std::set<std::string> stored;
  for (const JobRecord& job : state.jobs) stored.insert(job.id);
  for (const std::string& id : seen) EXPECT_EQ(stored.count(id), 1u) << id;
}

TEST(SqliteJobStoreTest, FileThatIsNoDatabaseIsNamed) {
  const TempDir dir;
  const std::string path = dir.Write("state.db", std::string(5000, 'x'));
  EXPECT_THAT(SqliteJobStore::Open({.path = path, .on_commit = {}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
}

TEST(SqliteJobStoreTest, ForeignDatabaseIsLeftAlone) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  Tamper(path, "CREATE TABLE photos (id INTEGER)");
  EXPECT_THAT(
      SqliteJobStore::Open({.path = path, .on_commit = {}}),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("some other program's")));
}

TEST(SqliteJobStoreTest, NewerSchemaIsRefused) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  OpenStore(path).reset();
  Tamper(path, "PRAGMA user_version = 99");
  EXPECT_THAT(SqliteJobStore::Open({.path = path, .on_commit = {}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("schema version 99")));
}

TEST(SqliteJobStoreTest, AddedTriggerIsFound) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  OpenStore(path).reset();
  Tamper(path,
         "CREATE TRIGGER evil AFTER INSERT ON jobs BEGIN DELETE FROM jobs; "
         "END");
  EXPECT_THAT(SqliteJobStore::Open({.path = path, .on_commit = {}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("evil")));
}

TEST(SqliteJobStoreTest, DamagedPagesAreFound) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  {
    const auto store = OpenStore(path);
    for (int i = 0; i < 50; ++i) {
      store->Enqueue(JobChange("job-" + std::to_string(i), i));
    }
  }
  std::string bytes = dir.Read("state.db");
  ASSERT_GT(bytes.size(), 16'384u);
  // All but the first page, which has the schema.
  std::fill(bytes.begin() + 4096, bytes.end(), '\x5a');
  dir.Write("state.db", bytes);
  EXPECT_THAT(SqliteJobStore::Open({.path = path, .on_commit = {}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
}

struct BadRow {
  const char* name;
  const char* sql;
  const char* phrase;
};

class SqliteJobStoreBadRowTest : public ::testing::TestWithParam<BadRow> {};

TEST_P(SqliteJobStoreBadRowTest, IsNamedAtLoad) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  {
    const auto store = OpenStore(path);
    StoreChange change = JobChange("a", 1);
    AttemptRecord attempt;
    attempt.job = "a";
    attempt.generation = 1;
    attempt.ranks.resize(2);
    change.attempts.push_back(attempt);
    store->Enqueue(change);
  }
  Tamper(path, GetParam().sql);
  const auto store = OpenStore(path);
  EXPECT_THAT(store->Load(), StatusIs(absl::StatusCode::kDataLoss,
                                      HasSubstr(GetParam().phrase)));
}

INSTANTIATE_TEST_SUITE_P(
    All, SqliteJobStoreBadRowTest,
    ::testing::Values(
        BadRow{"PathAsId", "UPDATE jobs SET id = '../../etc'", "id"},
        BadRow{"State", "UPDATE jobs SET state = 99", "state 99"},
        BadRow{"Spec", "UPDATE jobs SET spec = x'ffff'", "spec"},
        BadRow{"TextForSpec", "UPDATE jobs SET spec = 'text'", "no blob"},
        BadRow{"TextForOrder", "UPDATE jobs SET submit_order = 'x'",
               "no integer"},
        BadRow{"Outcome", "UPDATE attempts SET outcome = -4", "outcome -4"},
        BadRow{"MissingRank", "DELETE FROM ranks WHERE rank = 0", "rank 1"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
