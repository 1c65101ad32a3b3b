// What every collective gives, as a product of backend, world size, elements
// and dtype.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/dist/group_ranks.h"

namespace lockstep {
namespace {

using testing::GroupBackend;
using testing::GroupRun;
using testing::RunGroup;

uint16_t ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float FromBFloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// The bytes of a tensor of one rank.
struct HostTensor {
  HostTensor() = default;
  HostTensor(DType dtype, int64_t elements)
      : dtype(dtype), elements(elements), bytes(elements * SizeOf(dtype)) {}

  Tensor View() {
    return Tensor(bytes.data(), dtype, {elements}, DeviceKind::kCpu);
  }
  Tensor View(int64_t begin, int64_t count) {
    return View().Slice(begin, count);
  }
  float Get(int64_t i) const {
    if (dtype == DType::kBFloat16) {
      uint16_t bits;
      std::memcpy(&bits, bytes.data() + 2 * i, sizeof(bits));
      return FromBFloat16(bits);
    }
    if (dtype == DType::kInt32) {
      int32_t value;
      std::memcpy(&value, bytes.data() + 4 * i, sizeof(value));
      return static_cast<float>(value);
    }
    float value;
    std::memcpy(&value, bytes.data() + 4 * i, sizeof(value));
    return value;
  }
  void Set(int64_t i, float value) {
    if (dtype == DType::kBFloat16) {
      const uint16_t bits = ToBFloat16(value);
      std::memcpy(bytes.data() + 2 * i, &bits, sizeof(bits));
    } else if (dtype == DType::kInt32) {
      const auto whole = static_cast<int32_t>(value);
      std::memcpy(bytes.data() + 4 * i, &whole, sizeof(whole));
    } else {
      std::memcpy(bytes.data() + 4 * i, &value, sizeof(value));
    }
  }
  bool operator==(const HostTensor& other) const {
    return bytes == other.bytes;
  }

  DType dtype = DType::kFloat32;
  int64_t elements = 0;
  std::vector<char> bytes;
};

// Rank's contribution: a pure function of (rank, element), of both signs and
// of several magnitudes, so that sums in another order differ.
HostTensor Contribution(DType dtype, int64_t elements, int rank) {
  HostTensor tensor(dtype, elements);
  uint32_t state = 12345u + 7919u * static_cast<uint32_t>(rank);
  for (int64_t i = 0; i < elements; ++i) {
    state = state * 1664525u + 1013904223u;
    const int magnitude = static_cast<int>(state >> 28) - 8;
    const float unit = static_cast<float>(state >> 8 & 0xffff) / 32768.0f - 1;
    tensor.Set(i, dtype == DType::kInt32
                      ? static_cast<float>(state >> 16 & 0xffff)
                      : std::ldexp(unit, magnitude));
  }
  return tensor;
}

// The contributions of all ranks reduced one after another, by the letter.
HostTensor Reduced(DType dtype, int64_t elements, int size, ReduceOp op) {
  std::vector<HostTensor> inputs;
  for (int rank = 0; rank < size; ++rank) {
    inputs.push_back(Contribution(dtype, elements, rank));
  }
  HostTensor result(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    float value = inputs[0].Get(i);
    for (int rank = 1; rank < size; ++rank) {
      const float next = inputs[rank].Get(i);
      value = op == ReduceOp::kSum ? value + next : std::max(value, next);
    }
    result.Set(i, value);
  }
  return result;
}

absl::Status Expect(const HostTensor& got, const HostTensor& want,
                    const char* what) {
  if (got == want) return absl::OkStatus();
  int64_t i = 0;
  while (got.Get(i) == want.Get(i) && i + 1 < want.elements) ++i;
  return absl::FailedPreconditionError(absl::StrCat(
      what, ": element ", i, " is ", got.Get(i), ", want ", want.Get(i)));
}

using Parameters = std::tuple<GroupBackend, int, int64_t, DType>;

const char* NameOf(GroupBackend backend) {
  switch (backend) {
    case GroupBackend::kGloo:
      return "Gloo";
    case GroupBackend::kShared:
      return "Shared";
    case GroupBackend::kLocal:
      break;
  }
  return "Local";
}

std::string ParameterName(
    const ::testing::TestParamInfo<Parameters>& information) {
  const auto [backend, size, elements, dtype] = information.param;
  return absl::StrCat(NameOf(backend), "_Ranks", size, "_Elements", elements,
                      "_", Name(dtype));
}

class CollectivesTest : public ::testing::TestWithParam<Parameters> {
 protected:
  absl::Status Run(const std::function<absl::Status(ProcessGroup&)>& function) {
    GroupRun run;
    run.backend = std::get<0>(GetParam());
    run.size = size();
    return RunGroup(run, function);
  }
  int size() const { return std::get<1>(GetParam()); }
  int64_t elements() const { return std::get<2>(GetParam()); }
  DType dtype() const { return std::get<3>(GetParam()); }
};

class ReducingTest : public CollectivesTest {};

TEST_P(ReducingTest, AllReduceGivesTheOrderedReductionOnEveryRank) {
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
    const HostTensor want = Reduced(dtype(), elements(), size(), op);
    EXPECT_OK(Run([&](ProcessGroup& group) -> absl::Status {
      HostTensor tensor = Contribution(dtype(), elements(), group.rank());
      RETURN_IF_ERROR(group.AllReduce(tensor.View(), op)->Wait());
      return Expect(tensor, want, "all-reduce");
    }));
  }
}

TEST_P(ReducingTest, ReduceChangesTheRootOnly) {
  const int root = size() - 1;
  const HostTensor want = Reduced(dtype(), elements(), size(), ReduceOp::kSum);
  EXPECT_OK(Run([&](ProcessGroup& group) -> absl::Status {
    HostTensor tensor = Contribution(dtype(), elements(), group.rank());
    const HostTensor before = tensor;
    RETURN_IF_ERROR(group.Reduce(tensor.View(), ReduceOp::kSum, root)->Wait());
    return Expect(tensor, group.rank() == root ? want : before, "reduce");
  }));
}

TEST_P(ReducingTest, ReduceScatterGivesEachRankItsPart) {
  const HostTensor want =
      Reduced(dtype(), elements() * size(), size(), ReduceOp::kSum);
  EXPECT_OK(Run([&](ProcessGroup& group) -> absl::Status {
    HostTensor input = Contribution(dtype(), elements() * size(), group.rank());
    const HostTensor before = input;
    HostTensor output(dtype(), elements());
    RETURN_IF_ERROR(
        group.ReduceScatter(input.View(), output.View(), ReduceOp::kSum)
            ->Wait());
    RETURN_IF_ERROR(Expect(input, before, "input of reduce-scatter"));
    const Tensor own = input.View(group.rank() * elements(), elements());
    RETURN_IF_ERROR(
        group.ReduceScatter(input.View(), own, ReduceOp::kSum)->Wait());
    for (int64_t i = 0; i < elements(); ++i) {
      const int64_t at = group.rank() * elements() + i;
      if (output.Get(i) != want.Get(at) || input.Get(at) != want.Get(at)) {
        return absl::FailedPreconditionError(
            absl::StrCat("element ", at, " is ", output.Get(i), " apart and ",
                         input.Get(at), " in place, want ", want.Get(at)));
      }
    }
    return absl::OkStatus();
  }));
}

class MovingTest : public CollectivesTest {};

TEST_P(MovingTest, AllGatherGivesAllPartsInRankOrder) {
  EXPECT_OK(Run([&](ProcessGroup& group) -> absl::Status {
    HostTensor want(dtype(), 0);
    for (int rank = 0; rank < size(); ++rank) {
      const HostTensor part = Contribution(dtype(), elements(), rank);
      want.bytes.insert(want.bytes.end(), part.bytes.begin(), part.bytes.end());
      want.elements += elements();
    }
    HostTensor input = Contribution(dtype(), elements(), group.rank());
    HostTensor output(dtype(), elements() * size());
    RETURN_IF_ERROR(group.AllGather(input.View(), output.View())->Wait());
    RETURN_IF_ERROR(Expect(output, want, "all-gather"));
    // In place: the input is this rank's part of the output.
    HostTensor in_place(dtype(), elements() * size());
    const Tensor own = in_place.View(group.rank() * elements(), elements());
    if (elements() > 0) {
      std::memcpy(own.raw(), input.bytes.data(), input.bytes.size());
    }
    RETURN_IF_ERROR(group.AllGather(own, in_place.View())->Wait());
    return Expect(in_place, want, "all-gather in place");
  }));
}

TEST_P(MovingTest, BroadcastGivesTheRootsTensorFromEveryRoot) {
  EXPECT_OK(Run([&](ProcessGroup& group) -> absl::Status {
    for (int root = 0; root < size(); ++root) {
      HostTensor tensor = Contribution(dtype(), elements(), group.rank());
      RETURN_IF_ERROR(group.Broadcast(tensor.View(), root)->Wait());
      RETURN_IF_ERROR(
          Expect(tensor, Contribution(dtype(), elements(), root), "broadcast"));
    }
    return absl::OkStatus();
  }));
}

TEST_P(MovingTest, AllToAllMovesUnevenCounts) {
  // From rank a to rank b: a share that depends on both, 0 for some.
  const auto count = [&](int from, int to) {
    return (from + 2 * to) % 3 == 1 ? 0 : elements() / (1 + (from + to) % 4);
  };
  const auto message = [&](int from, int to) {
    return Contribution(dtype(), count(from, to), 100 * from + to);
  };
  EXPECT_OK(Run([&](ProcessGroup& group) -> absl::Status {
    std::vector<HostTensor> sent;
    std::vector<HostTensor> received;
    for (int peer = 0; peer < size(); ++peer) {
      sent.push_back(message(group.rank(), peer));
      received.emplace_back(dtype(), count(peer, group.rank()));
    }
    std::vector<Tensor> input;
    std::vector<Tensor> output;
    for (HostTensor& tensor : sent) input.push_back(tensor.View());
    for (HostTensor& tensor : received) output.push_back(tensor.View());
    RETURN_IF_ERROR(group.AllToAll(input, output)->Wait());
    for (int peer = 0; peer < size(); ++peer) {
      RETURN_IF_ERROR(
          Expect(received[peer], message(peer, group.rank()), "all-to-all"));
    }
    return absl::OkStatus();
  }));
}

TEST_P(MovingTest, ExchangeMovesTransfersInAnyOrder) {
  // Two messages between each pair of ranks, the own one included, listed by
  // half of the ranks in opposite order.
  const auto message = [&](int from, int to, int number) {
    return Contribution(dtype(), elements() + number,
                        1000 * from + 10 * to + number);
  };
  EXPECT_OK(Run([&](ProcessGroup& group) -> absl::Status {
    std::vector<HostTensor> sent;
    std::vector<HostTensor> received;
    sent.reserve(2 * size());
    received.reserve(2 * size());
    std::vector<PeerTransfer> transfers;
    for (int number : {0, 1}) {
      for (int step = 0; step < size(); ++step) {
        const int peer = group.rank() % 2 == 0 ? step : size() - 1 - step;
        sent.push_back(message(group.rank(), peer, number));
        received.emplace_back(dtype(), elements() + number);
        transfers.push_back(
            {PeerTransfer::Direction::kSend, peer, sent.back().View()});
        transfers.push_back(
            {PeerTransfer::Direction::kReceive, peer, received.back().View()});
      }
    }
    RETURN_IF_ERROR(group.Exchange(transfers)->Wait());
    size_t next = 0;
    for (int number : {0, 1}) {
      for (int step = 0; step < size(); ++step) {
        const int peer = group.rank() % 2 == 0 ? step : size() - 1 - step;
        RETURN_IF_ERROR(Expect(
            received[next++], message(peer, group.rank(), number), "exchange"));
      }
    }
    return absl::OkStatus();
  }));
}

constexpr int64_t kSizes[] = {0, 1, 3, 1000, 100 * 1024 + 1};

INSTANTIATE_TEST_SUITE_P(
    Gloo, ReducingTest,
    ::testing::Combine(::testing::Values(GroupBackend::kGloo,
                                         GroupBackend::kShared),
                       ::testing::Values(1, 2, 3, 4, 8),
                       ::testing::ValuesIn(kSizes),
                       ::testing::Values(DType::kFloat32, DType::kBFloat16)),
    ParameterName);
INSTANTIATE_TEST_SUITE_P(
    Local, ReducingTest,
    ::testing::Combine(::testing::Values(GroupBackend::kLocal),
                       ::testing::Values(1), ::testing::ValuesIn(kSizes),
                       ::testing::Values(DType::kFloat32, DType::kBFloat16)),
    ParameterName);
INSTANTIATE_TEST_SUITE_P(
    Gloo, MovingTest,
    ::testing::Combine(::testing::Values(GroupBackend::kGloo,
                                         GroupBackend::kShared),
                       ::testing::Values(1, 2, 3, 4, 8),
                       ::testing::ValuesIn(kSizes),
                       ::testing::Values(DType::kBFloat16, DType::kInt32)),
    ParameterName);
INSTANTIATE_TEST_SUITE_P(
    Local, MovingTest,
    ::testing::Combine(::testing::Values(GroupBackend::kLocal),
                       ::testing::Values(1), ::testing::ValuesIn(kSizes),
                       ::testing::Values(DType::kFloat32)),
    ParameterName);

class PipelinedCollectivesTest : public ::testing::TestWithParam<GroupBackend> {
};

INSTANTIATE_TEST_SUITE_P(Backends, PipelinedCollectivesTest,
                         ::testing::Values(GroupBackend::kGloo,
                                           GroupBackend::kShared),
                         [](const auto& backend) {
                           return NameOf(backend.param);
                         });

TEST_P(PipelinedCollectivesTest, ManyPiecesOnThreeRanks) {
  // Several pieces per segment, more than are in flight at once.
  constexpr int64_t kElements = (int64_t{5} << 20) + 7;
  const HostTensor sum = Reduced(DType::kFloat32, kElements, 3, ReduceOp::kSum);
  GroupRun run;
  run.backend = GetParam();
  run.size = 3;
  EXPECT_OK(RunGroup(run, [&](ProcessGroup& group) -> absl::Status {
    HostTensor tensor = Contribution(DType::kFloat32, kElements, group.rank());
    const HostTensor before = tensor;
    RETURN_IF_ERROR(group.Reduce(tensor.View(), ReduceOp::kSum, 1)->Wait());
    RETURN_IF_ERROR(Expect(tensor, group.rank() == 1 ? sum : before, "reduce"));
    tensor = before;
    RETURN_IF_ERROR(group.AllReduce(tensor.View(), ReduceOp::kSum)->Wait());
    RETURN_IF_ERROR(Expect(tensor, sum, "all-reduce"));
    tensor = before;
    RETURN_IF_ERROR(group.Broadcast(tensor.View(), 2)->Wait());
    return Expect(tensor, Contribution(DType::kFloat32, kElements, 2),
                  "broadcast");
  }));
}

TEST(CollectiveOrderTest, RootMayLeaveOnceItsBroadcastIsDone) {
  // Its last bytes are still on their way then.
  constexpr int64_t kElements = int64_t{4} << 20;
  for (int round = 0; round < 8; ++round) {
    GroupRun run;
    run.size = 8;
    EXPECT_OK(RunGroup(run, [&](ProcessGroup& group) -> absl::Status {
      HostTensor tensor(DType::kInt32, kElements);
      if (group.rank() == 0) tensor.Set(kElements - 1, 7.0f);
      RETURN_IF_ERROR(group.Broadcast(tensor.View(), 0)->Wait());
      EXPECT_EQ(tensor.Get(kElements - 1), 7.0f);
      return absl::OkStatus();
    }));
  }
}

TEST(CollectiveOrderTest, ManyLaunchedBeforeTheFirstWait) {
  GroupRun run;
  run.size = 3;
  EXPECT_OK(RunGroup(run, [&](ProcessGroup& group) -> absl::Status {
    std::vector<HostTensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 64; ++i) {
      tensors.push_back(
          Contribution(DType::kFloat32, 10 + 997 * (i % 5), group.rank()));
    }
    for (HostTensor& tensor : tensors) {
      works.push_back(group.AllReduce(tensor.View(), ReduceOp::kSum));
    }
    for (size_t i = works.size(); i-- > 0;) {
      RETURN_IF_ERROR(works[i]->Wait());
      RETURN_IF_ERROR(Expect(
          tensors[i],
          Reduced(DType::kFloat32, tensors[i].elements, 3, ReduceOp::kSum),
          "all-reduce"));
    }
    return absl::OkStatus();
  }));
}

TEST(CollectiveOrderTest, BucketBoundariesDontChangeTheBits) {
  constexpr int64_t kElements = 60000;
  const HostTensor whole =
      Reduced(DType::kFloat32, kElements, 4, ReduceOp::kSum);
  GroupRun run;
  run.size = 4;
  EXPECT_OK(RunGroup(run, [&](ProcessGroup& group) -> absl::Status {
    HostTensor tensor = Contribution(DType::kFloat32, kElements, group.rank());
    for (int64_t begin = 0; begin < kElements;) {
      const int64_t count = std::min<int64_t>(kElements - begin, 1 + begin * 2);
      RETURN_IF_ERROR(
          group.AllReduce(tensor.View(begin, count), ReduceOp::kSum)->Wait());
      begin += count;
    }
    return Expect(tensor, whole, "all-reduce in buckets");
  }));
}

TEST(CollectiveOrderTest, BarrierHoldsEveryRankUntilTheLastHasCome) {
  std::atomic<int> come{0};
  GroupRun run;
  run.size = 4;
  EXPECT_OK(RunGroup(run, [&](ProcessGroup& group) -> absl::Status {
    for (int round = 1; round <= 20; ++round) {
      ++come;
      RETURN_IF_ERROR(group.Barrier()->Wait());
      if (come.load() < 4 * round) {
        return absl::FailedPreconditionError(
            absl::StrCat("round ", round, ": left with ", come.load()));
      }
      RETURN_IF_ERROR(group.Barrier()->Wait());
    }
    return absl::OkStatus();
  }));
}

TEST(CollectiveOrderTest, ExchangesBetweenTwoDontInvolveTheThird) {
  GroupRun run;
  run.size = 3;
  EXPECT_OK(RunGroup(run, [&](ProcessGroup& group) -> absl::Status {
    HostTensor token = Contribution(DType::kInt32, 5, group.rank());
    // 0 -> 1 three times, 1 -> 2 once; then all together.
    const auto transfer = [&](PeerTransfer::Direction direction, int peer) {
      const PeerTransfer transfers[] = {{direction, peer, token.View()}};
      return group.Exchange(transfers)->Wait();
    };
    if (group.rank() == 0) {
      for (int i = 0; i < 3; ++i) {
        RETURN_IF_ERROR(transfer(PeerTransfer::Direction::kSend, 1));
      }
    } else if (group.rank() == 1) {
      for (int i = 0; i < 3; ++i) {
        RETURN_IF_ERROR(transfer(PeerTransfer::Direction::kReceive, 0));
      }
      RETURN_IF_ERROR(transfer(PeerTransfer::Direction::kSend, 2));
    } else {
      RETURN_IF_ERROR(transfer(PeerTransfer::Direction::kReceive, 1));
    }
    RETURN_IF_ERROR(group.Barrier()->Wait());
    return Expect(token, Contribution(DType::kInt32, 5, 0), "passed on");
  }));
}

}  // namespace
}  // namespace lockstep
