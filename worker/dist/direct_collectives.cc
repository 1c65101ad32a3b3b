#include "worker/dist/direct_collectives.h"

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "common/status_macros.h"
#include "worker/dist/reduce_pipeline.h"
#include "worker/dist/reduction.h"
#include "worker/dist/shared_memory_collectives.h"

namespace lockstep {
namespace {

using Regions = std::vector<std::unique_ptr<GlooLink::Region>>;

// Up to so many bytes sent in all, a rank sends its whole tensor to every other
// rank: one message's delay in place of two.
constexpr int64_t kOneHopBytes = int64_t{256} << 10;
// Segments start at multiples of a cache line.
constexpr int64_t kSegmentAlignment = 32;
// Second messages of a piece use slots this far from the first ones.
constexpr uint64_t kSecondSlots = uint64_t{1} << 32;

SharedRun Shared(const CollectiveRun& run) {
  return {*run.shared, run.deadline};
}

bool OneHop(const CollectiveRun& run, const Tensor& tensor) {
  return tensor.bytes() * (run.link.size() - 1) <= kOneHopBytes;
}

Segments CutEvenly(const Tensor& tensor, int size) {
  const int64_t even = (tensor.elements() + size - 1) / size;
  const int64_t aligned =
      (even + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
  return Segments(tensor.elements(), aligned,
                  PieceElements(size, tensor.dtype()));
}

Tensor Part(const Tensor& tensor, Piece piece) {
  return Tensor(tensor.data<char>() + piece.begin * SizeOf(tensor.dtype()),
                tensor.dtype(), {piece.count}, tensor.device());
}

// Every rank's tensor in rank order: `received` has the others', one after
// another.
std::vector<const void*> InRankOrder(const Tensor& own, const Buffer& received,
                                     int rank, int size) {
  std::vector<const void*> inputs(size);
  const char* next = static_cast<const char*>(received.data());
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) {
      inputs[peer] = own.raw();
      continue;
    }
    inputs[peer] = next;
    next += own.bytes();
  }
  return inputs;
}

// Registers the memory that InRankOrder describes and posts its receives.
absl::StatusOr<Regions> ReceiveFromAll(const CollectiveRun& run,
                                       const Buffer& received, int64_t bytes) {
  Regions regions(run.link.size());
  char* next = static_cast<char*>(received.data());
  for (int peer = 0; peer < run.link.size(); ++peer) {
    if (peer == run.link.rank()) continue;
    regions[peer] = run.link.Register(peer, next, bytes);
    RETURN_IF_ERROR(regions[peer]->Receive(run.slot, 0, bytes));
    next += bytes;
  }
  return regions;
}

absl::Status AllReduceInOneHop(const CollectiveRun& run, const Tensor& tensor,
                               ReduceOp op) {
  const int size = run.link.size();
  ASSIGN_OR_RETURN(const Buffer scratch,
                   run.allocator.Allocate((size - 1) * tensor.bytes(),
                                          MemoryCategory::kBuffer));
  ASSIGN_OR_RETURN(const Regions received,
                   ReceiveFromAll(run, scratch, tensor.bytes()));
  const Regions own = RegisterForAll(run.link, tensor);
  for (int step = 1; step < size; ++step) {
    const int peer = (run.link.rank() + step) % size;
    RETURN_IF_ERROR(own[peer]->Send(run.slot, 0, tensor.bytes()));
  }
  RETURN_IF_ERROR(FinishAll(received, run.deadline));
  // The tensor is overwritten next.
  RETURN_IF_ERROR(FinishAll(own, run.deadline));
  ReduceInOrder(InRankOrder(tensor, scratch, run.link.rank(), size),
                tensor.raw(), tensor.elements(), tensor.dtype(), op);
  return absl::OkStatus();
}

absl::Status ReduceInOneHop(const CollectiveRun& run, const Tensor& tensor,
                            ReduceOp op, int root) {
  if (run.link.rank() != root) {
    const auto region = run.link.Register(root, tensor.raw(), tensor.bytes());
    RETURN_IF_ERROR(region->Send(run.slot, 0, tensor.bytes()));
    return region->WaitSends(run.deadline);
  }
  const int size = run.link.size();
  ASSIGN_OR_RETURN(const Buffer scratch,
                   run.allocator.Allocate((size - 1) * tensor.bytes(),
                                          MemoryCategory::kBuffer));
  ASSIGN_OR_RETURN(const Regions received,
                   ReceiveFromAll(run, scratch, tensor.bytes()));
  RETURN_IF_ERROR(FinishAll(received, run.deadline));
  ReduceInOrder(InRankOrder(tensor, scratch, root, size), tensor.raw(),
                tensor.elements(), tensor.dtype(), op);
  return absl::OkStatus();
}

// Posts the sends of this rank's `piece` of a tensor to all others.
absl::Status SendToAll(const CollectiveRun& run, const Regions& regions,
                       uint64_t slot, int64_t offset, int64_t bytes) {
  for (int step = 1; step < run.link.size(); ++step) {
    const int peer = (run.link.rank() + step) % run.link.size();
    RETURN_IF_ERROR(regions[peer]->Send(slot, offset, bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunAllReduce(const CollectiveRun& run, const Tensor& tensor,
                          ReduceOp op) {
  if (run.shared != nullptr) {
    return SharedReduce(Shared(run), tensor, op, std::nullopt);
  }
  const int rank = run.link.rank();
  const int size = run.link.size();
  if (size == 1 || tensor.elements() == 0) return absl::OkStatus();
  if (OneHop(run, tensor)) return AllReduceInOneHop(run, tensor, op);
  const int64_t width = SizeOf(tensor.dtype());
  const Segments segments = CutEvenly(tensor, size);
  const Regions regions = RegisterForAll(run.link, tensor);
  ReduceHooks hooks;
  // An owner sends its reduced piece only after it has received this rank's
  // contribution to it: the receive can't overwrite what is still to be sent.
  hooks.post = [&](int64_t index) -> absl::Status {
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      const Piece piece = segments.PieceOf(peer, index);
      RETURN_IF_ERROR(regions[peer]->Receive(run.slot + kSecondSlots + index,
                                             piece.begin * width,
                                             piece.count * width));
    }
    return absl::OkStatus();
  };
  hooks.reduced = [&](int64_t index) {
    const Piece piece = segments.PieceOf(rank, index);
    return SendToAll(run, regions, run.slot + kSecondSlots + index,
                     piece.begin * width, piece.count * width);
  };
  RETURN_IF_ERROR(ReduceOwnSegment(run, regions, tensor,
                                   Part(tensor, segments.Segment(rank)),
                                   segments, op, hooks));
  return FinishAll(regions, run.deadline);
}

absl::Status RunReduce(const CollectiveRun& run, const Tensor& tensor,
                       ReduceOp op, int root) {
  if (run.shared != nullptr) {
    return SharedReduce(Shared(run), tensor, op, root);
  }
  const int rank = run.link.rank();
  const int size = run.link.size();
  if (size == 1 || tensor.elements() == 0) return absl::OkStatus();
  if (OneHop(run, tensor)) return ReduceInOneHop(run, tensor, op, root);
  const int64_t width = SizeOf(tensor.dtype());
  const Segments segments = CutEvenly(tensor, size);
  const Piece own = segments.Segment(rank);
  const Regions regions = RegisterForAll(run.link, tensor);
  ReduceHooks hooks;
  if (rank == root) {
    // As in RunAllReduce, a reduced piece comes after what it replaces left.
    hooks.post = [&](int64_t index) -> absl::Status {
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) continue;
        const Piece piece = segments.PieceOf(peer, index);
        RETURN_IF_ERROR(regions[peer]->Receive(run.slot + kSecondSlots + index,
                                               piece.begin * width,
                                               piece.count * width));
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(ReduceOwnSegment(run, regions, tensor, Part(tensor, own),
                                     segments, op, hooks));
    return FinishAll(regions, run.deadline);
  }
  // The tensor stays as it was: the own segment is reduced beside it.
  ASSIGN_OR_RETURN(
      const Buffer reduced,
      run.allocator.Allocate(own.count * width, MemoryCategory::kBuffer));
  const auto to_root = run.link.Register(root, reduced.data(), reduced.bytes());
  hooks.reduced = [&](int64_t index) {
    const Piece piece = segments.PieceOf(rank, index);
    return to_root->Send(run.slot + kSecondSlots + index,
                         (piece.begin - own.begin) * width,
                         piece.count * width);
  };
  const Tensor output(reduced.data(), tensor.dtype(), {own.count},
                      tensor.device());
  RETURN_IF_ERROR(
      ReduceOwnSegment(run, regions, tensor, output, segments, op, hooks));
  RETURN_IF_ERROR(to_root->WaitSends(run.deadline));
  return FinishAll(regions, run.deadline);
}

absl::Status RunReduceScatter(const CollectiveRun& run, const Tensor& input,
                              const Tensor& output, ReduceOp op) {
  if (run.shared != nullptr) {
    return SharedReduceScatter(Shared(run), input, output, op);
  }
  const int size = run.link.size();
  if (output.elements() == 0) return absl::OkStatus();
  if (size == 1) {
    if (input.raw() != output.raw()) {
      std::memcpy(output.raw(), input.raw(), input.bytes());
    }
    return absl::OkStatus();
  }
  const Segments segments(input.elements(), output.elements(),
                          PieceElements(size, input.dtype()));
  const Regions regions = RegisterForAll(run.link, input);
  RETURN_IF_ERROR(ReduceOwnSegment(run, regions, input, output, segments, op,
                                   ReduceHooks()));
  return FinishAll(regions, run.deadline);
}

absl::Status RunAllGather(const CollectiveRun& run, const Tensor& input,
                          const Tensor& output) {
  if (run.shared != nullptr) {
    return SharedAllGather(Shared(run), input, output);
  }
  const int rank = run.link.rank();
  const int64_t bytes = input.bytes();
  if (bytes == 0) return absl::OkStatus();
  const Regions regions = RegisterForAll(run.link, output);
  for (int peer = 0; peer < run.link.size(); ++peer) {
    if (peer == rank) continue;
    RETURN_IF_ERROR(regions[peer]->Receive(run.slot, peer * bytes, bytes));
  }
  char* own = output.data<char>() + rank * bytes;
  if (own != input.raw()) std::memcpy(own, input.raw(), bytes);
  RETURN_IF_ERROR(SendToAll(run, regions, run.slot, rank * bytes, bytes));
  return FinishAll(regions, run.deadline);
}

absl::Status RunAllToAll(const CollectiveRun& run,
                         absl::Span<const Tensor> input,
                         absl::Span<const Tensor> output) {
  const int rank = run.link.rank();
  const int size = run.link.size();
  Regions received(size);
  Regions sent(size);
  // Both sides of a pair must mean the same bytes: they are part of the slot.
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    received[peer] =
        run.link.Register(peer, output[peer].raw(), output[peer].bytes());
    RETURN_IF_ERROR(received[peer]->Receive(run.slot + output[peer].bytes(), 0,
                                            output[peer].bytes()));
  }
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    sent[peer] =
        run.link.Register(peer, input[peer].raw(), input[peer].bytes());
    RETURN_IF_ERROR(sent[peer]->Send(run.slot + input[peer].bytes(), 0,
                                     input[peer].bytes()));
  }
  if (input[rank].bytes() > 0) {
    std::memcpy(output[rank].raw(), input[rank].raw(), input[rank].bytes());
  }
  RETURN_IF_ERROR(FinishAll(received, run.deadline));
  return FinishAll(sent, run.deadline);
}

absl::Status RunBroadcast(const CollectiveRun& run, const Tensor& tensor,
                          int root) {
  if (run.shared != nullptr) {
    return SharedBroadcast(Shared(run), tensor, root);
  }
  const int rank = run.link.rank();
  const int size = run.link.size();
  if (size == 1 || tensor.elements() == 0) return absl::OkStatus();
  const int64_t width = SizeOf(tensor.dtype());
  const Regions regions = RegisterForAll(run.link, tensor);
  if (OneHop(run, tensor) || size == 2) {
    if (rank == root) {
      RETURN_IF_ERROR(SendToAll(run, regions, run.slot, 0, tensor.bytes()));
    } else {
      RETURN_IF_ERROR(regions[root]->Receive(run.slot, 0, tensor.bytes()));
    }
    return FinishAll(regions, run.deadline);
  }
  // The root hands each rank its segment, piece by piece, and every rank passes
  // its own on to all but the root (van de Geijn's scatter and all-gather): the
  // root sends the tensor once, not size - 1 times.
  const Segments segments = CutEvenly(tensor, size);
  const auto bytes_of = [&](Piece piece) { return piece.count * width; };
  for (int64_t index = 0; index < segments.pieces(); ++index) {
    const uint64_t slot = run.slot + index;
    const Piece own = segments.PieceOf(rank, index);
    if (rank == root) {
      for (int step = 1; step < size; ++step) {
        const int peer = (rank + step) % size;
        const Piece piece = segments.PieceOf(peer, index);
        RETURN_IF_ERROR(
            regions[peer]->Send(slot, piece.begin * width, bytes_of(piece)));
      }
      RETURN_IF_ERROR(SendToAll(run, regions, slot + kSecondSlots,
                                own.begin * width, bytes_of(own)));
      continue;
    }
    RETURN_IF_ERROR(
        regions[root]->Receive(slot, own.begin * width, bytes_of(own)));
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      const Piece piece = segments.PieceOf(peer, index);
      RETURN_IF_ERROR(regions[peer]->Receive(
          slot + kSecondSlots, piece.begin * width, bytes_of(piece)));
    }
  }
  if (rank == root) return FinishAll(regions, run.deadline);
  for (int64_t index = 0; index < segments.pieces(); ++index) {
    const Piece own = segments.PieceOf(rank, index);
    const uint64_t slot = run.slot + kSecondSlots + index;
    // From the root come this piece and then the root's own.
    if (own.count > 0) {
      RETURN_IF_ERROR(regions[root]->WaitReceive(run.deadline));
    }
    if (segments.PieceOf(root, index).count > 0) {
      RETURN_IF_ERROR(regions[root]->WaitReceive(run.deadline));
    }
    for (int step = 1; step < size; ++step) {
      const int peer = (rank + step) % size;
      if (peer == root) continue;
      RETURN_IF_ERROR(
          regions[peer]->Send(slot, own.begin * width, bytes_of(own)));
    }
  }
  return FinishAll(regions, run.deadline);
}

absl::Status RunExchange(const CollectiveRun& run,
                         absl::Span<const PeerTransfer> transfers,
                         absl::Span<const uint64_t> slots) {
  const int rank = run.link.rank();
  Regions regions(transfers.size());
  std::vector<const Tensor*> own_sends;
  // Receives first, so that what comes finds its place.
  for (const auto direction :
       {PeerTransfer::Direction::kReceive, PeerTransfer::Direction::kSend}) {
    for (size_t i = 0; i < transfers.size(); ++i) {
      const PeerTransfer& transfer = transfers[i];
      const Tensor& tensor = transfer.tensor;
      if (transfer.direction != direction || transfer.peer == rank) continue;
      regions[i] =
          run.link.Register(transfer.peer, tensor.raw(), tensor.bytes());
      RETURN_IF_ERROR(direction == PeerTransfer::Direction::kSend
                          ? regions[i]->Send(slots[i], 0, tensor.bytes())
                          : regions[i]->Receive(slots[i], 0, tensor.bytes()));
    }
  }
  for (const PeerTransfer& transfer : transfers) {
    if (transfer.peer == rank &&
        transfer.direction == PeerTransfer::Direction::kSend) {
      own_sends.push_back(&transfer.tensor);
    }
  }
  size_t next = 0;
  for (const PeerTransfer& transfer : transfers) {
    if (transfer.peer != rank ||
        transfer.direction == PeerTransfer::Direction::kSend) {
      continue;
    }
    const Tensor& from = *own_sends[next++];
    if (from.bytes() > 0 && from.raw() != transfer.tensor.raw()) {
      std::memcpy(transfer.tensor.raw(), from.raw(), from.bytes());
    }
  }
  return FinishAll(regions, run.deadline);
}

absl::Status RunBarrier(const CollectiveRun& run) {
  if (run.shared != nullptr) return SharedBarrier(Shared(run));
  char token = 0;
  std::vector<char> tokens(run.link.size());
  Regions sent(run.link.size());
  Regions received(run.link.size());
  for (int peer = 0; peer < run.link.size(); ++peer) {
    if (peer == run.link.rank()) continue;
    received[peer] = run.link.Register(peer, &tokens[peer], 1);
    RETURN_IF_ERROR(received[peer]->Receive(run.slot, 0, 1));
    sent[peer] = run.link.Register(peer, &token, 1);
    RETURN_IF_ERROR(sent[peer]->Send(run.slot, 0, 1));
  }
  RETURN_IF_ERROR(FinishAll(received, run.deadline));
  return FinishAll(sent, run.deadline);
}

}  // namespace lockstep
