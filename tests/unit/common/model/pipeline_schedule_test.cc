// Schedules as data: each does all the work, in an order in which no rank waits
// for ever, and holds no more micro-batches than its paper says.
#include "common/model/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using Kind = PipelineAction::Kind;

struct ScheduleCase {
  v1::PipelineSchedule kind;
  int ranks;
  int chunks;
  int micro_batches;
};

std::vector<std::vector<PipelineAction>> AllRanks(const ScheduleCase& of) {
  std::vector<std::vector<PipelineAction>> lists;
  for (int rank = 0; rank < of.ranks; ++rank) {
    lists.push_back(MakePipelineSchedule(
        of.kind, {rank, of.ranks, of.chunks, of.micro_batches}));
  }
  return lists;
}

class PipelineScheduleTest : public ::testing::TestWithParam<ScheduleCase> {};

TEST_P(PipelineScheduleTest, DoesEachPartOfTheWorkOnceAndInOrder) {
  for (const std::vector<PipelineAction>& list : AllRanks(GetParam())) {
    // By kind and chunk, the micro-batches in the order of their turns.
    std::map<std::pair<Kind, int>, std::vector<int>> done;
    for (const PipelineAction& action : list) {
      done[{action.kind, action.chunk}].push_back(action.micro_batch);
    }
    std::vector<int> all(GetParam().micro_batches);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    for (int chunk = 0; chunk < GetParam().chunks; ++chunk) {
      EXPECT_EQ((done[{Kind::kForward, chunk}]), all);
      const bool whole = done.count({Kind::kBackward, chunk}) > 0;
      if (whole) {
        EXPECT_EQ((done[{Kind::kBackward, chunk}]), all);
      } else {
        EXPECT_EQ((done[{Kind::kBackwardInput, chunk}]), all);
        EXPECT_EQ((done[{Kind::kBackwardWeights, chunk}]), all);
      }
    }
  }
}

// Rank by rank, each action waits for what it takes.
TEST_P(PipelineScheduleTest, NoRankWaitsForEver) {
  const auto lists = AllRanks(GetParam());
  const int ranks = GetParam().ranks;
  const int stages = ranks * GetParam().chunks;
  std::set<std::tuple<bool, int, int>> done;  // backward, stage, micro-batch
  std::vector<size_t> next(ranks, 0);
  bool moved = true;
  while (moved) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank) {
      while (next[rank] < lists[rank].size()) {
        const PipelineAction& action = lists[rank][next[rank]];
        const int stage = action.chunk * ranks + rank;
        const bool backward = action.kind != Kind::kForward;
        if (action.kind != Kind::kBackwardWeights) {
          const int beside = backward ? stage + 1 : stage - 1;
          const bool waits =
              beside >= 0 && beside < stages &&
              !done.count({backward, beside, action.micro_batch});
          if (waits) break;
          ASSERT_TRUE(!backward ||
                      done.count({false, stage, action.micro_batch}));
          done.insert({backward, stage, action.micro_batch});
        } else {
          ASSERT_TRUE(done.count({true, stage, action.micro_batch}));
        }
        ++next[rank];
        moved = true;
      }
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(next[rank], lists[rank].size()) << "rank " << rank;
  }
}

TEST_P(PipelineScheduleTest, HoldsNoMoreMicroBatchesThanItsPaperSays) {
  const ScheduleCase& of = GetParam();
  const auto lists = AllRanks(of);
  for (int rank = 0; rank < of.ranks; ++rank) {
    int held = 0, most = 0;
    for (const PipelineAction& action : lists[rank]) {
      if (action.kind == Kind::kForward) ++held;
      most = std::max(most, held);
      if (action.kind == Kind::kBackward ||
          action.kind == Kind::kBackwardWeights) {
        --held;
      }
    }
    switch (of.kind) {
      case v1::PIPELINE_SCHEDULE_GPIPE:
        EXPECT_EQ(most, of.ranks == 1 ? 1 : of.micro_batches);
        break;
      case v1::PIPELINE_SCHEDULE_1F1B:
        EXPECT_EQ(most, std::min(of.micro_batches, of.ranks - rank));
        break;
      case v1::PIPELINE_SCHEDULE_ZERO_BUBBLE:
        // As 1F1B's first rank.
        EXPECT_LE(most, std::min(of.micro_batches, of.ranks));
        break;
      default:
        if (of.micro_batches % of.ranks == 0) {
          EXPECT_LE(most,
                    (of.ranks - rank - 1) * 2 + (of.chunks - 1) * of.ranks + 1);
        }
    }
  }
}

// With forward, and each half of backward, of one length: the time that rank 0
// takes, and so its bubble.
int Makespan(const ScheduleCase& of) {
  const auto lists = AllRanks(of);
  const int stages = of.ranks * of.chunks;
  std::map<std::tuple<bool, int, int>, int> end;
  std::vector<size_t> next(of.ranks, 0);
  std::vector<int> now(of.ranks, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < of.ranks; ++rank) {
      for (; next[rank] < lists[rank].size(); ++next[rank], moved = true) {
        const PipelineAction& action = lists[rank][next[rank]];
        const int stage = action.chunk * of.ranks + rank;
        const bool backward = action.kind != Kind::kForward;
        int start = now[rank];
        if (action.kind != Kind::kBackwardWeights) {
          const int beside = backward ? stage + 1 : stage - 1;
          if (beside >= 0 && beside < stages) {
            const auto found = end.find({backward, beside, action.micro_batch});
            if (found == end.end()) break;
            start = std::max(start, found->second);
          }
        }
        now[rank] = start + (action.kind == Kind::kBackward ? 2 : 1);
        if (action.kind != Kind::kBackwardWeights) {
          end[{backward, stage, action.micro_batch}] = now[rank];
        }
      }
    }
  }
  return *std::max_element(now.begin(), now.end());
}

TEST(PipelineBubbleTest, InterleavingAndZeroBubbleTakeLessTime) {
  constexpr int kRanks = 4, kMicroBatches = 8;
  const int gpipe =
      Makespan({v1::PIPELINE_SCHEDULE_GPIPE, kRanks, 1, kMicroBatches});
  const int plain =
      Makespan({v1::PIPELINE_SCHEDULE_1F1B, kRanks, 1, kMicroBatches});
  const int zero =
      Makespan({v1::PIPELINE_SCHEDULE_ZERO_BUBBLE, kRanks, 1, kMicroBatches});
  // Bubble of 1F1B: (p - 1)(F + B + W); of ZB-H1: (p - 1)(F + B - W).
  EXPECT_EQ(plain, 3 * kMicroBatches + 3 * (kRanks - 1));
  EXPECT_EQ(gpipe, plain);
  EXPECT_EQ(zero, 3 * kMicroBatches + (kRanks - 1));
  // A chunk is half of a stage: in units of it 1F1B takes twice as long.
  const int interleaved = Makespan(
      {v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B, kRanks, 2, kMicroBatches});
  EXPECT_EQ(interleaved, 2 * 3 * kMicroBatches + 3 * (kRanks - 1));
}

std::vector<ScheduleCase> Cases() {
  std::vector<ScheduleCase> cases;
  for (const auto kind :
       {v1::PIPELINE_SCHEDULE_GPIPE, v1::PIPELINE_SCHEDULE_1F1B,
        v1::PIPELINE_SCHEDULE_ZERO_BUBBLE}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      for (const int micro_batches : {1, 2, 3, 5, 8, 17}) {
        cases.push_back({kind, ranks, 1, micro_batches});
      }
    }
  }
  for (const int ranks : {2, 3, 4, 8}) {
    for (const int chunks : {2, 3}) {
      for (const int micro_batches : {1, 2, 3, 4, 5, 7, 8, 13, 16}) {
        cases.push_back({v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B, ranks, chunks,
                         micro_batches});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, PipelineScheduleTest,
                         ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<ScheduleCase>& of) {
                           return absl::StrCat(
                               "Schedule", of.param.kind, "Ranks",
                               of.param.ranks, "Chunks", of.param.chunks,
                               "MicroBatches", of.param.micro_batches);
                         });

}  // namespace
}  // namespace lockstep
