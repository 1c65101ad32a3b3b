#include "coordinator/launch/rendezvous_store.h"

#include <thread>

#include "common/log.h"
#include "coordinator/store/sqlite_job_store.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeClock;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::GangId Gang(int64_t generation) {
  v1::GangId gang;
  gang.set_job("j");
  gang.set_generation(generation);
  return gang;
}

class RendezvousStoreTest : public ::testing::Test {
 protected:
  RendezvousStoreTest() {
    store_ = *SqliteJobStore::Open(
        {.path = dir_.File("state.db"), .on_commit = nullptr});
    rendezvous_ = std::make_unique<RendezvousStore>(*store_, clock_);
    rendezvous_->Open(Gang(2), "secret");
  }
  absl::StatusOr<std::vector<std::string>> Get(
      const std::vector<std::string>& keys,
      absl::Duration timeout = absl::ZeroDuration()) {
    return rendezvous_->Get(Gang(2), "secret", keys, timeout,
                            [this] { return cancelled_.load(); });
  }

  const TempDir dir_;
  FakeClock clock_;
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<SqliteJobStore> store_;
  std::unique_ptr<RendezvousStore> rendezvous_;
};

TEST_F(RendezvousStoreTest, ValuesComeInTheOrderOfTheKeys) {
  ASSERT_OK(rendezvous_->Set(Gang(2), "secret", "a", "1"));
  ASSERT_OK(rendezvous_->Set(Gang(2), "secret", "b", "2"));
  EXPECT_THAT(Get({"b", "a"}), IsOkAndHolds(ElementsAre("2", "1")));
}

TEST_F(RendezvousStoreTest, GetWaitsForTheLastKey) {
  ASSERT_OK(rendezvous_->Set(Gang(2), "secret", "a", "1"));
  std::thread setter([&] {
    CHECK(clock_.AwaitWaiters(1)) << "nobody waits";
    CHECK(rendezvous_->Set(Gang(2), "secret", "b", "2").ok()) << "set";
  });
  EXPECT_THAT(Get({"a", "b"}, absl::Seconds(60)),
              IsOkAndHolds(ElementsAre("1", "2")));
  setter.join();
}

TEST_F(RendezvousStoreTest, DeadlineNamesTheFirstMissingKeyAndCountsTheOthers) {
  ASSERT_OK(rendezvous_->Set(Gang(2), "secret", "a", "1"));
  std::thread time([&] {
    CHECK(clock_.AwaitWaiters(1)) << "nobody waits";
    clock_.Advance(absl::Seconds(61));
  });
  EXPECT_THAT(
      Get({"a", "b", "c"}, absl::Seconds(60)),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("key b is missing after 1m, and 1 other of 3")));
  time.join();
}

TEST_F(RendezvousStoreTest, StaleGenerationIsAborted) {
  EXPECT_THAT(rendezvous_->Set(Gang(1), "secret", "a", "1"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("stale")));
  EXPECT_THAT(rendezvous_->Get(Gang(1), "secret", {"a"}, absl::Seconds(1),
                               [] { return false; }),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("stale")));
}

TEST_F(RendezvousStoreTest, UnknownJobIsAborted) {
  v1::GangId gang = Gang(2);
  gang.set_job("stranger");
  EXPECT_THAT(rendezvous_->Set(gang, "secret", "a", "1"),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(RendezvousStoreTest, WrongSecretIsDenied) {
  EXPECT_THAT(rendezvous_->Set(Gang(2), "Secret", "a", "1"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(
      rendezvous_->Get(Gang(2), "", {}, absl::Seconds(1), [] { return false; }),
      StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(RendezvousStoreTest, NewGenerationEndsWaitsOfTheOld) {
  std::thread opener([&] {
    CHECK(clock_.AwaitWaiters(1)) << "nobody waits";
    rendezvous_->Open(Gang(3), "other");
  });
  EXPECT_THAT(Get({"a"}, absl::Seconds(60)),
              StatusIs(absl::StatusCode::kAborted));
  opener.join();
  // Keys of the old generation are gone.
  EXPECT_THAT(rendezvous_->Get(Gang(3), "other", {"a"}, absl::ZeroDuration(),
                               [] { return false; }),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(RendezvousStoreTest, ClosingAndStoppingEndWaits) {
  std::thread closer([&] {
    CHECK(clock_.AwaitWaiters(1)) << "nobody waits";
    rendezvous_->Close(Gang(2));
  });
  EXPECT_THAT(Get({"a"}, absl::Seconds(60)),
              StatusIs(absl::StatusCode::kAborted));
  closer.join();
  rendezvous_->Open(Gang(4), "s");
  rendezvous_->Stop();
  EXPECT_THAT(rendezvous_->Get(Gang(4), "s", {"a"}, absl::Seconds(60),
                               [] { return false; }),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(RendezvousStoreTest, GoneCallerIsNoticed) {
  cancelled_ = true;
  std::thread time([&] {
    CHECK(clock_.AwaitWaiters(1)) << "nobody waits";
    clock_.Advance(absl::Seconds(1));
  });
  EXPECT_THAT(Get({"a"}, absl::Seconds(60)),
              StatusIs(absl::StatusCode::kCancelled));
  time.join();
}

TEST_F(RendezvousStoreTest, KeyIsSetOnce) {
  ASSERT_OK(rendezvous_->Set(Gang(2), "secret", "a", "1"));
  EXPECT_THAT(rendezvous_->Set(Gang(2), "secret", "a", "1"), IsOk());
  EXPECT_THAT(rendezvous_->Set(Gang(2), "secret", "a", "2"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(rendezvous_->Set(Gang(2), "secret", std::string(2000, 'k'), ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(RendezvousStoreTest, KeysComeBackAfterARestart) {
  ASSERT_OK(rendezvous_->Set(Gang(2), "secret", "a", "1"));
  ASSERT_OK(store_->WaitUntilStored(absl::Seconds(30)));
  ASSERT_OK_AND_ASSIGN(const StoredState stored, store_->Load());
  ASSERT_THAT(stored.rendezvous, SizeIs(1));
  RendezvousStore again(*store_, clock_);
  again.Open(Gang(2), "secret");
  again.Restore(stored.rendezvous[0]);
  EXPECT_THAT(again.Get(Gang(2), "secret", {"a"}, absl::ZeroDuration(),
                        [] { return false; }),
              IsOkAndHolds(ElementsAre("1")));
}

}  // namespace
}  // namespace lockstep
