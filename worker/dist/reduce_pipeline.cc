#include "worker/dist/reduce_pipeline.h"

#include "common/model/workspace.h"
#include "common/status_macros.h"
#include "worker/dist/reduction.h"

namespace lockstep {
int64_t PieceElements(int size, DType dtype) {
  return ReducePieceBytes(size) / SizeOf(dtype);
}

std::vector<std::unique_ptr<GlooLink::Region>> RegisterForAll(
    GlooLink& link, const Tensor& tensor) {
  std::vector<std::unique_ptr<GlooLink::Region>> regions(link.size());
  for (int peer = 0; peer < link.size(); ++peer) {
    if (peer == link.rank()) continue;
    regions[peer] = link.Register(peer, tensor.raw(), tensor.bytes());
  }
  return regions;
}

absl::Status FinishAll(
    const std::vector<std::unique_ptr<GlooLink::Region>>& regions,
    absl::Time deadline) {
  for (const auto& region : regions) {
    if (region == nullptr) continue;
    RETURN_IF_ERROR(region->WaitReceives(deadline));
    RETURN_IF_ERROR(region->WaitSends(deadline));
  }
  return absl::OkStatus();
}

absl::Status ReduceOwnSegment(
    const CollectiveRun& run,
    const std::vector<std::unique_ptr<GlooLink::Region>>& regions,
    const Tensor& input, const Tensor& output, const Segments& segments,
    ReduceOp op, const ReduceHooks& hooks) {
  const int rank = run.link.rank();
  const int size = run.link.size();
  const int64_t width = SizeOf(input.dtype());
  const int64_t pieces = segments.pieces();
  const int64_t in_flight = std::min(kPiecesInFlight, pieces);
  const Piece own = segments.Segment(rank);
  const int64_t slot_bytes =
      std::min(segments.piece_elements(), own.count) * width;

  // Scratch: for each peer, `in_flight` slots of one piece.
  const int64_t peer_bytes = in_flight * slot_bytes;
  ASSIGN_OR_RETURN(
      const Buffer scratch,
      run.allocator.Allocate((size - 1) * peer_bytes, MemoryCategory::kBuffer));
  std::vector<std::unique_ptr<GlooLink::Region>> received(size);
  std::vector<const char*> contributions(size);
  char* next = static_cast<char*>(scratch.data());
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    contributions[peer] = next;
    received[peer] = run.link.Register(peer, next, peer_bytes);
    next += peer_bytes;
  }

  const auto post = [&](int64_t index) -> absl::Status {
    const int64_t count = segments.PieceOf(rank, index).count;
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      RETURN_IF_ERROR(received[peer]->Receive(
          run.slot + index, index % in_flight * slot_bytes, count * width));
    }
    if (hooks.post) RETURN_IF_ERROR(hooks.post(index));
    // Each rank starts with the one after it, so that they don't all send to
    // the same one at once.
    for (int step = 1; step < size; ++step) {
      const int peer = (rank + step) % size;
      const Piece piece = segments.PieceOf(peer, index);
      RETURN_IF_ERROR(regions[peer]->Send(run.slot + index, piece.begin * width,
                                          piece.count * width));
    }
    return absl::OkStatus();
  };

  for (int64_t index = 0; index < in_flight; ++index) {
    RETURN_IF_ERROR(post(index));
  }
  std::vector<const void*> inputs(size);
  for (int64_t index = 0; index < pieces; ++index) {
    const Piece piece = segments.PieceOf(rank, index);
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) {
        inputs[peer] = input.data<char>() + piece.begin * width;
        continue;
      }
      if (piece.count > 0) {
        RETURN_IF_ERROR(received[peer]->WaitReceive(run.deadline));
      }
      inputs[peer] = contributions[peer] + index % in_flight * slot_bytes;
    }
    if (piece.count > 0) {
      ReduceInOrder(inputs,
                    output.data<char>() + (piece.begin - own.begin) * width,
                    piece.count, input.dtype(), op);
    }
    if (hooks.reduced) RETURN_IF_ERROR(hooks.reduced(index));
    if (index + in_flight < pieces) RETURN_IF_ERROR(post(index + in_flight));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
