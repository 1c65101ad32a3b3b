// Arguments that don't fit are refused by every backend, before anything is
// sent, with what was got and wanted.
#include "worker/dist/collective_checks.h"

#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/dist/group_ranks.h"

namespace lockstep {
namespace {

using testing::GroupBackend;
using testing::GroupRun;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class CollectiveChecksTest : public ::testing::TestWithParam<GroupBackend> {
 protected:
  void Run(const std::function<void(ProcessGroup&)>& function) {
    GroupRun run;
    run.backend = GetParam();
    run.size = GetParam() == GroupBackend::kLocal ? 1 : 2;
    EXPECT_OK(testing::RunGroup(run, [&](ProcessGroup& group) {
      function(group);
      // The group goes on after a refusal.
      return group.Barrier()->Wait();
    }));
  }
  Tensor View(int64_t begin, int64_t count, DType dtype = DType::kFloat32) {
    return Tensor(values_.data() + begin, dtype, {count}, DeviceKind::kCpu);
  }

  std::vector<float> values_ = std::vector<float>(100);
};

TEST_P(CollectiveChecksTest, AllGatherOfOtherCounts) {
  Run([&](ProcessGroup& group) {
    EXPECT_THAT(group.AllGather(View(0, 3), View(10, 7))->Wait(),
                StatusIs(kInvalid, HasSubstr("output has 7 elements, want ")));
    EXPECT_THAT(
        group.AllGather(View(0, 3), View(10, 3 * group.size(), DType::kInt32))
            ->Wait(),
        StatusIs(kInvalid, HasSubstr("input is fp32 and output")));
  });
}

TEST_P(CollectiveChecksTest, ReduceScatterOfOtherCounts) {
  Run([&](ProcessGroup& group) {
    EXPECT_THAT(
        group.ReduceScatter(View(10, 7), View(0, 3), ReduceOp::kSum)->Wait(),
        StatusIs(kInvalid, HasSubstr("input has 7 elements")));
  });
}

TEST_P(CollectiveChecksTest, OverlapThatIsNotTheOwnPart) {
  Run([&](ProcessGroup& group) {
    EXPECT_THAT(group.AllGather(View(1, 4), View(0, 4 * group.size()))->Wait(),
                StatusIs(kInvalid, HasSubstr("overlaps")));
  });
}

TEST_P(CollectiveChecksTest, ReducingIntegers) {
  Run([&](ProcessGroup& group) {
    EXPECT_THAT(
        group.AllReduce(View(0, 4, DType::kInt32), ReduceOp::kSum)->Wait(),
        StatusIs(kInvalid, HasSubstr("tensor is int32, want fp32 or bf16")));
  });
}

TEST_P(CollectiveChecksTest, TensorWithPaddedRows) {
  Run([&](ProcessGroup& group) {
    const Tensor padded(values_.data(), DType::kFloat32, {2, 3},
                        DeviceKind::kCpu, 16);
    EXPECT_THAT(group.AllReduce(padded, ReduceOp::kSum)->Wait(),
                StatusIs(kInvalid, HasSubstr("want dense")));
  });
}

TEST_P(CollectiveChecksTest, TensorOfAnotherDevice) {
  Run([&](ProcessGroup& group) {
    const Tensor elsewhere(values_.data(), DType::kFloat32, {3},
                           DeviceKind::kCuda);
    EXPECT_THAT(group.Broadcast(elsewhere, 0)->Wait(),
                StatusIs(kInvalid, HasSubstr("not in host memory")));
  });
}

TEST_P(CollectiveChecksTest, RootThatIsNoRank) {
  Run([&](ProcessGroup& group) {
    EXPECT_THAT(group.Broadcast(View(0, 3), group.size())->Wait(),
                StatusIs(kInvalid, HasSubstr("root is ")));
    EXPECT_THAT(group.Reduce(View(0, 3), ReduceOp::kSum, -1)->Wait(),
                StatusIs(kInvalid, HasSubstr("root is -1")));
  });
}

TEST_P(CollectiveChecksTest, AllToAllOfOtherCounts) {
  Run([&](ProcessGroup& group) {
    const std::vector<Tensor> three(3, View(0, 1));
    EXPECT_THAT(group.AllToAll(three, three)->Wait(),
                StatusIs(kInvalid, HasSubstr("3 inputs and 3 outputs")));
    std::vector<Tensor> input(group.size(), View(0, 2));
    std::vector<Tensor> output;
    for (int i = 0; i < group.size(); ++i) {
      output.push_back(View(10 + 10 * i, 3));
    }
    EXPECT_THAT(group.AllToAll(input, output)->Wait(),
                StatusIs(kInvalid, HasSubstr("for this rank itself")));
    output.assign(group.size(), View(1, 2));
    EXPECT_THAT(group.AllToAll(input, output)->Wait(),
                StatusIs(kInvalid, HasSubstr("overlaps")));
  });
}

TEST_P(CollectiveChecksTest, ExchangeThatDoesntPairUpWithItself) {
  Run([&](ProcessGroup& group) {
    const PeerTransfer lonely[] = {
        {PeerTransfer::Direction::kSend, group.rank(), View(0, 2)}};
    EXPECT_THAT(group.Exchange(lonely)->Wait(),
                StatusIs(kInvalid, HasSubstr("don't pair up")));
    const PeerTransfer nobody[] = {
        {PeerTransfer::Direction::kSend, group.size(), View(0, 2)}};
    EXPECT_THAT(group.Exchange(nobody)->Wait(),
                StatusIs(kInvalid, HasSubstr("peer of transfer 0")));
  });
}

TEST_P(CollectiveChecksTest, MessageNamesRankGroupAndCollective) {
  Run([&](ProcessGroup& group) {
    EXPECT_THAT(
        group.AllReduce(View(0, 4, DType::kInt32), ReduceOp::kSum)->Wait(),
        StatusIs(kInvalid, ::testing::MatchesRegex(
                               "rank [01] of group test.*: all-reduce.*: .*")));
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, CollectiveChecksTest,
                         ::testing::Values(GroupBackend::kGloo,
                                           GroupBackend::kLocal),
                         [](const auto& information) {
                           return information.param == GroupBackend::kGloo
                                      ? "Gloo"
                                      : "Local";
                         });

}  // namespace
}  // namespace lockstep
