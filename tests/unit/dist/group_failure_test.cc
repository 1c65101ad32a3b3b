// What happens to a group when a rank doesn't come, does something else, runs
// out of memory, or is aborted: every rank ends with a status that says so.
#include <barrier>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/model/workspace.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/dist/group_ranks.h"
#include "worker/dist/direct_collectives.h"
#include "worker/dist/gloo_device.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::GroupRun;
using ::testing::HasSubstr;
using testing::InMemoryStore;
using testing::RunGroupCollect;
using testing::StatusIs;
using testing::TestAllocator;

// Generous: a machine may be busy. Far below every deadline in use.
constexpr absl::Duration kAtOnce = absl::Seconds(10);

Tensor View(std::vector<float>& values) {
  return Tensor(values.data(), DType::kFloat32,
                {static_cast<int64_t>(values.size())}, DeviceKind::kCpu);
}

using testing::GroupBackend;

class AbortTest
    : public ::testing::TestWithParam<std::tuple<GroupBackend, int64_t>> {};

TEST_P(AbortTest, WakesRanksThatWaitForOne) {
  GroupRun run;
  run.backend = std::get<0>(GetParam());
  run.size = 3;
  run.collective_timeout = absl::Minutes(10);
  absl::Notification aborted;
  const absl::Time begin = absl::Now();
  const std::vector<absl::Status> statuses =
      RunGroupCollect(run, [&](ProcessGroup& group) -> absl::Status {
        if (group.rank() == 2) {
          aborted.WaitForNotification();
          return absl::OkStatus();
        }
        std::vector<float> values(std::get<1>(GetParam()), 1.0f);
        const std::unique_ptr<Work> work =
            group.AllReduce(View(values), ReduceOp::kSum);
        const std::unique_ptr<Work> queued = group.Barrier();
        std::thread control([&] { group.Abort(); });
        const absl::Status status = work->Wait();
        control.join();
        if (group.rank() == 0) aborted.Notify();
        EXPECT_THAT(queued->Wait(), StatusIs(absl::StatusCode::kAborted));
        EXPECT_THAT(group.Barrier()->Wait(),
                    StatusIs(absl::StatusCode::kAborted));
        return status;
      });
  EXPECT_LT(absl::Now() - begin, kAtOnce);
  // The other one's abort may be noticed first.
  EXPECT_THAT(statuses[0], AnyOf(StatusIs(absl::StatusCode::kAborted),
                                 StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_OK(statuses[2]);
}

INSTANTIATE_TEST_SUITE_P(
    Elements, AbortTest,
    ::testing::Combine(::testing::Values(GroupBackend::kGloo,
                                         GroupBackend::kShared),
                       ::testing::Values(1, 100, 1000000)));

TEST(SharedMemoryFailureTest, CollectivesThatDifferAreNamed) {
  GroupRun run;
  run.backend = GroupBackend::kShared;
  run.size = 2;
  run.collective_timeout = absl::Minutes(10);
  const absl::Time begin = absl::Now();
  const std::vector<absl::Status> statuses =
      RunGroupCollect(run, [](ProcessGroup& group) -> absl::Status {
        std::vector<float> values(group.rank() == 0 ? 10 : 12, 1.0f);
        return group.AllReduce(View(values), ReduceOp::kSum)->Wait();
      });
  EXPECT_LT(absl::Now() - begin, kAtOnce);
  // One sees the difference, and so may the other, or that the first is gone.
  EXPECT_THAT(statuses, ::testing::Contains(StatusIs(
                            absl::StatusCode::kFailedPrecondition,
                            HasSubstr("is at another collective than rank"))));
  for (const absl::Status& status : statuses) EXPECT_FALSE(status.ok());
}

TEST(GroupFailureTest, AbortBeforeAnyCollective) {
  GroupRun run;
  run.size = 2;
  for (const absl::Status& status :
       RunGroupCollect(run, [](ProcessGroup& group) {
         group.Abort();
         group.Abort();
         return group.Barrier()->Wait();
       })) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                                 HasSubstr("of group test")));
  }
}

TEST(GroupFailureTest, DroppedWorkAfterAbortTouchesNoTensor) {
  GroupRun run;
  run.size = 2;
  absl::Notification done;
  EXPECT_OK(testing::RunGroup(run, [&](ProcessGroup& group) -> absl::Status {
    if (group.rank() == 1) {
      done.WaitForNotification();
      return absl::OkStatus();
    }
    {
      // Under ASan a late access to `values` is an error.
      std::vector<float> values(1 << 20, 1.0f);
      group.AllReduce(View(values), ReduceOp::kSum);
      group.AllReduce(View(values), ReduceOp::kSum);
      group.Abort();
    }
    done.Notify();
    return absl::OkStatus();
  }));
}

TEST(GroupFailureTest, DeadlineNamesCollectiveAndRank) {
  GroupRun run;
  run.size = 2;
  run.collective_timeout = absl::Milliseconds(100);
  absl::Notification done;
  const std::vector<absl::Status> statuses =
      RunGroupCollect(run, [&](ProcessGroup& group) -> absl::Status {
        RETURN_IF_ERROR(group.Barrier()->Wait());
        if (group.rank() == 1) {
          done.WaitForNotification();
          return absl::OkStatus();
        }
        std::vector<float> values(1000, 1.0f);
        const absl::Status status =
            group.AllReduce(View(values), ReduceOp::kSum)->Wait();
        // Later ones fail at once and say what failed first.
        EXPECT_EQ(group.Barrier()->Wait(), status);
        done.Notify();
        return status;
      });
  EXPECT_THAT(statuses[0],
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "rank 0 of group test (2 ranks): all-reduce 2 of 4000 "
                       "bytes: rank 1 did not answer in time"));
  EXPECT_OK(statuses[1]);
}

TEST(GroupFailureTest, CollectivesThatDifferDontMeet) {
  GroupRun run;
  run.size = 2;
  run.collective_timeout = absl::Milliseconds(200);
  const auto both_fail = [&](const auto& function) {
    std::barrier failed(2);
    return RunGroupCollect(run, [&](ProcessGroup& group) {
      std::vector<float> values(2000, 1.0f);
      const absl::Status status = function(group, values)->Wait();
      failed.arrive_and_wait();
      return status;
    });
  };
  // Whoever's deadline passes first closes its connections.
  const auto failure = AnyOf(StatusIs(absl::StatusCode::kDeadlineExceeded),
                             StatusIs(absl::StatusCode::kUnavailable));
  for (const absl::Status& status :
       both_fail([](ProcessGroup&group, std::vector<float>&values) {
         return group.AllReduce(View(values).Slice(0, 1000 + group.rank()),
                                ReduceOp::kSum);
       })) {
    EXPECT_THAT(status, failure) << "other counts";
  }
  for (const absl::Status& status :
       both_fail([](ProcessGroup&group, std::vector<float>&values) {
         return group.AllReduce(
             View(values), group.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax);
       })) {
    EXPECT_THAT(status, failure) << "other ops";
  }
  for (const absl::Status& status :
       both_fail([](ProcessGroup&group, std::vector<float>&values) {
         return group.rank() == 0
                    ? group.AllReduce(View(values), ReduceOp::kSum)
                    : group.Broadcast(View(values), 0);
       })) {
    EXPECT_THAT(status, failure) << "other collectives";
  }
}

TEST(GroupFailureTest, RankOutOfMemoryEndsTheOthersAtOnce) {
  InMemoryStore store;
  const absl::Time begin = absl::Now();
  const std::vector<absl::Status> statuses =
      testing::SpawnRanksCollect(3, [&](int rank) -> absl::Status {
        TestAllocator allocator(rank == 1 ? 1000 : 0);
        GlooGroupFactoryOptions options;
        options.store = &store;
        options.allocator = &allocator;
        options.collective_timeout = absl::Minutes(10);
        ASSIGN_OR_RETURN(auto made,
                         testing::MakeRankGroup(testing::GroupBackend::kGloo,
                                                options, rank, 3));
        std::vector<float> values(100000, 1.0f);
        return made.group->AllReduce(View(values), ReduceOp::kSum)->Wait();
      });
  EXPECT_LT(absl::Now() - begin, kAtOnce);
  EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kResourceExhausted,
                                    HasSubstr("rank 1 of group test (3 ranks): "
                                              "all-reduce 1 of 400000")));
  for (int rank : {0, 2}) {
    EXPECT_THAT(statuses[rank],
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is gone")));
  }
}

TEST(GroupFailureTest, ScratchIsCountedAndStaysUnderItsBound) {
  InMemoryStore store;
  EXPECT_OK(testing::SpawnRanks(4, [&](int rank) -> absl::Status {
    TestAllocator allocator;
    GlooGroupFactoryOptions options;
    options.store = &store;
    options.allocator = &allocator;
    ASSIGN_OR_RETURN(
        auto made,
        testing::MakeRankGroup(testing::GroupBackend::kGloo, options, rank, 4));
    for (int64_t elements : {100, 50000, 3000000}) {
      std::vector<float> values(elements, 1.0f);
      allocator.ResetPeaks();
      RETURN_IF_ERROR(
          made.group->AllReduce(View(values), ReduceOp::kSum)->Wait());
      RETURN_IF_ERROR(
          made.group->Reduce(View(values), ReduceOp::kSum, 0)->Wait());
      const int64_t peak = allocator.Use().total.peak_bytes;
      EXPECT_GT(peak, 0);
      EXPECT_LE(peak, CollectiveScratchBytes(4 * elements, 4));
      EXPECT_EQ(allocator.Use()
                    .by_category[static_cast<size_t>(MemoryCategory::kBuffer)]
                    .peak_bytes,
                peak);
      EXPECT_EQ(allocator.Use().total.live_bytes, 0);
    }
    return made.group->Barrier()->Wait();
  }));
}

TEST(ConnectFailureTest, MissingRankIsNamed) {
  InMemoryStore store;
  for (const absl::Status& status :
       testing::SpawnRanksCollect(2, [&](int rank) -> absl::Status {
         TestAllocator allocator;
         GlooGroupFactoryOptions options;
         options.store = &store;
         options.allocator = &allocator;
         options.connect_timeout = absl::Milliseconds(200);
         return testing::MakeRankGroup(testing::GroupBackend::kGloo, options,
                                       rank, 3)
             .status();
       })) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 AllOf(HasSubstr("of group test (3 ranks): "
                                                 "rank 2 did not join"),
                                       HasSubstr("200ms"))));
  }
}

TEST(ConnectFailureTest, RankThatLeavesWhileConnectingEndsTheOthers) {
  InMemoryStore store;
  // Rank 2 has said where it listens, and is gone.
  {
    TestAllocator allocator;
    GlooGroupFactoryOptions options;
    options.store = &store;
    options.allocator = &allocator;
    options.connect_timeout = absl::Milliseconds(1);
    EXPECT_THAT(
        testing::MakeRankGroup(testing::GroupBackend::kGloo, options, 2, 3)
            .status(),
        StatusIs(absl::StatusCode::kDeadlineExceeded));
  }
  for (const absl::Status& status :
       testing::SpawnRanksCollect(2, [&](int rank) -> absl::Status {
         TestAllocator allocator;
         GlooGroupFactoryOptions options;
         options.store = &store;
         options.allocator = &allocator;
         options.connect_timeout = absl::Milliseconds(500);
         return testing::MakeRankGroup(testing::GroupBackend::kGloo, options,
                                       rank, 3)
             .status();
       })) {
    EXPECT_THAT(status, AnyOf(StatusIs(absl::StatusCode::kUnavailable),
                              StatusIs(absl::StatusCode::kDeadlineExceeded)));
  }
}

TEST(ConnectFailureTest, RanksThatDisagreeOnTheSize) {
  InMemoryStore store;
  for (const absl::Status& status :
       testing::SpawnRanksCollect(2, [&](int rank) -> absl::Status {
         TestAllocator allocator;
         GlooGroupFactoryOptions options;
         options.store = &store;
         options.allocator = &allocator;
         options.connect_timeout = absl::Milliseconds(200);
         return testing::MakeRankGroup(testing::GroupBackend::kGloo, options,
                                       rank, 2 + rank)
             .status();
       })) {
    EXPECT_THAT(status, AnyOf(StatusIs(absl::StatusCode::kInvalidArgument),
                              StatusIs(absl::StatusCode::kDeadlineExceeded)));
  }
}

TEST(GlooDeviceTest, AddressThatIsNotOfThisHost) {
  for (const char* address : {"203.0.113.77", "no-such-host.invalid", ""}) {
    EXPECT_THAT(
        GlooDevice::Create(address).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("data address \"", address, "\""))));
  }
}

TEST(GlooDeviceTest, InterfaceOrAddress) {
  EXPECT_OK(GlooDevice::Create("lo").status());
  EXPECT_OK(GlooDevice::Create("127.0.0.1").status());
  EXPECT_OK(GlooDevice::Create("localhost").status());
}

}  // namespace
}  // namespace lockstep
