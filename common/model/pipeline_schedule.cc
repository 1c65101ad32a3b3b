#include "common/model/pipeline_schedule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/log.h"

namespace lockstep {
namespace {

using Kind = PipelineAction::Kind;
using Actions = std::vector<PipelineAction>;

Actions GPipe(const PipelineShape& shape) {
  Actions actions;
  for (int i = 0; i < shape.micro_batches; ++i) {
    actions.push_back({Kind::kForward, i});
  }
  for (int i = 0; i < shape.micro_batches; ++i) {
    actions.push_back({Kind::kBackward, i});
  }
  return actions;
}

// `forward` and `backward` in their orders: `warmup` forward ones first, then
// one of each in turn, then what is left.
Actions Alternate(const Actions& forward, const Actions& backward, int warmup) {
  Actions actions(forward.begin(), forward.begin() + warmup);
  size_t done = 0;
  for (size_t next = warmup; next < forward.size(); ++next) {
    actions.push_back(forward[next]);
    actions.push_back(backward[done++]);
  }
  actions.insert(actions.end(), backward.begin() + done, backward.end());
  return actions;
}

// Forward ones that a rank does before its first backward one.
int Warmup(const PipelineShape& shape) {
  return std::min(shape.micro_batches, shape.ranks - 1 - shape.rank);
}

Actions OneForwardOneBackward(const PipelineShape& shape) {
  const Actions all = GPipe(shape);
  const auto middle = all.begin() + shape.micro_batches;
  return Alternate({all.begin(), middle}, {middle, all.end()}, Warmup(shape));
}

// A rank's weight gradients lag behind its input gradients by its number: then
// every rank holds as many micro-batches as 1F1B's first one.
Actions ZeroBubble(const PipelineShape& shape) {
  Actions actions;
  int weights = 0;
  for (const PipelineAction& action : OneForwardOneBackward(shape)) {
    if (action.kind == Kind::kForward) {
      actions.push_back(action);
      continue;
    }
    actions.push_back({Kind::kBackwardInput, action.micro_batch});
    // Once nothing goes forward any more, each gap takes one.
    if (action.micro_batch >= weights + shape.rank) {
      actions.push_back({Kind::kBackwardWeights, weights++});
    }
  }
  while (weights < shape.micro_batches) {
    actions.push_back({Kind::kBackwardWeights, weights++});
  }
  return actions;
}

// Micro-batches in groups of as many as there are ranks; each group goes
// through all chunks before the next one starts.
Actions InterleavedOrder(const PipelineShape& shape, Kind kind) {
  Actions actions;
  for (int first = 0; first < shape.micro_batches; first += shape.ranks) {
    const int last = std::min(shape.micro_batches, first + shape.ranks);
    for (int c = 0; c < shape.chunks; ++c) {
      const int chunk = kind == Kind::kForward ? c : shape.chunks - 1 - c;
      for (int i = first; i < last; ++i) actions.push_back({kind, i, chunk});
    }
  }
  return actions;
}

Actions Interleaved(const PipelineShape& shape, int extra) {
  const int total = shape.micro_batches * shape.chunks;
  const int warmup = (shape.ranks - shape.rank - 1) * 2 +
                     (shape.chunks - 1) * shape.ranks + extra;
  return Alternate(InterleavedOrder(shape, Kind::kForward),
                   InterleavedOrder(shape, Kind::kBackward),
                   std::min(total, warmup));
}

// Whether all ranks come to the end of their lists, each action waiting for
// what it takes from the stages beside it.
bool Completes(const std::vector<Actions>& lists, int chunks) {
  const int ranks = static_cast<int>(lists.size());
  const int stages = ranks * chunks;
  // (stage, micro-batch) of what is done.
  std::set<std::pair<int, int>> forward, backward;
  std::vector<size_t> next(ranks, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank) {
      for (; next[rank] < lists[rank].size(); ++next[rank], moved = true) {
        const PipelineAction& action = lists[rank][next[rank]];
        const int stage = action.chunk * ranks + rank;
        const std::pair<int, int> here = {stage, action.micro_batch};
        if (action.kind == Kind::kForward) {
          if (stage > 0 && !forward.count({stage - 1, action.micro_batch})) {
            break;
          }
          forward.insert(here);
        } else {
          if (!forward.count(here) ||
              (stage + 1 < stages &&
               !backward.count({stage + 1, action.micro_batch}))) {
            break;
          }
          backward.insert(here);
        }
      }
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (next[rank] < lists[rank].size()) return false;
  }
  return true;
}

// Groups that aren't full leave less time than the usual warm-up is for: it is
// made longer, on all ranks alike, until no rank waits for ever.
Actions InterleavedOneForwardOneBackward(const PipelineShape& shape) {
  const int total = shape.micro_batches * shape.chunks;
  for (int extra = 0; extra < total; ++extra) {
    std::vector<Actions> lists;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      PipelineShape other = shape;
      other.rank = rank;
      lists.push_back(Interleaved(other, extra));
    }
    if (Completes(lists, shape.chunks)) return lists[shape.rank];
  }
  // All forward, then all backward, always comes to its end.
  return Interleaved(shape, total);
}

}  // namespace

std::vector<PipelineAction> MakePipelineSchedule(v1::PipelineSchedule kind,
                                                 const PipelineShape& shape) {
  CHECK(shape.chunks == 1 || kind == v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B)
      << shape.chunks << " chunks without interleaving";
  if (shape.ranks == 1 && shape.chunks == 1) {
    return OneForwardOneBackward(shape);
  }
  switch (kind) {
    case v1::PIPELINE_SCHEDULE_GPIPE:
      return GPipe(shape);
    case v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B:
      return InterleavedOneForwardOneBackward(shape);
    case v1::PIPELINE_SCHEDULE_ZERO_BUBBLE:
      return ZeroBubble(shape);
    case v1::PIPELINE_SCHEDULE_UNSPECIFIED:
    case v1::PIPELINE_SCHEDULE_1F1B:
    case v1::PipelineSchedule_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::PipelineSchedule_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return OneForwardOneBackward(shape);
}

}  // namespace lockstep
