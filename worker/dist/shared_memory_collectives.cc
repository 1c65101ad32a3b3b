#include "worker/dist/shared_memory_collectives.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/status_macros.h"
#include "worker/dist/reduction.h"

namespace lockstep {
namespace {

constexpr int64_t kSlotBytes = SharedMemoryChannel::kSlotBytes;
// Parts of a slot start at multiples of a cache line.
constexpr int64_t kAlignment = 64;

// One round: everyone fills, then everyone reads.
template <typename Fill, typename Read>
absl::Status Round(const SharedRun& run, const Fill& fill, const Read& read) {
  fill(run.channel.slot(run.channel.rank()));
  run.channel.Publish();
  RETURN_IF_ERROR(run.channel.Await(run.deadline));
  read();
  run.channel.Next();
  return absl::OkStatus();
}

}  // namespace

absl::Status SharedReduce(const SharedRun& run, const Tensor& tensor,
                          ReduceOp op, std::optional<int> root) {
  const int rank = run.channel.rank(), size = run.channel.size();
  const int64_t width = SizeOf(tensor.dtype());
  const bool keeps = !root.has_value() || *root == rank;
  for (int64_t begin = 0; begin < tensor.bytes(); begin += kSlotBytes) {
    char* const own = tensor.data<char>() + begin;
    const int64_t bytes = std::min(kSlotBytes, tensor.bytes() - begin);
    RETURN_IF_ERROR(Round(
        run, [&](char* slot) { std::memcpy(slot, own, bytes); },
        [&] {
          if (!keeps) return;
          std::vector<const void*> inputs;
          for (int peer = 0; peer < size; ++peer) {
            inputs.push_back(peer == rank ? own : run.channel.slot(peer));
          }
          ReduceInOrder(inputs, own, bytes / width, tensor.dtype(), op);
        }));
  }
  return absl::OkStatus();
}

absl::Status SharedReduceScatter(const SharedRun& run, const Tensor& input,
                                 const Tensor& output, ReduceOp op) {
  const int rank = run.channel.rank(), size = run.channel.size();
  const int64_t width = SizeOf(input.dtype());
  // A slot has a piece for each rank.
  const int64_t piece = kSlotBytes / size / kAlignment * kAlignment;
  for (int64_t begin = 0; begin < output.bytes(); begin += piece) {
    const int64_t bytes = std::min(piece, output.bytes() - begin);
    const auto part_of = [&](int peer) {
      return input.data<char>() + peer * output.bytes() + begin;
    };
    RETURN_IF_ERROR(Round(
        run,
        [&](char* slot) {
          for (int peer = 0; peer < size; ++peer) {
            if (peer == rank) continue;
            std::memcpy(slot + peer * piece, part_of(peer), bytes);
          }
        },
        [&] {
          std::vector<const void*> inputs;
          for (int peer = 0; peer < size; ++peer) {
            inputs.push_back(peer == rank
                                 ? part_of(rank)
                                 : run.channel.slot(peer) + rank * piece);
          }
          ReduceInOrder(inputs, output.data<char>() + begin, bytes / width,
                        input.dtype(), op);
        }));
  }
  return absl::OkStatus();
}

absl::Status SharedAllGather(const SharedRun& run, const Tensor& input,
                             const Tensor& output) {
  const int rank = run.channel.rank(), size = run.channel.size();
  const int64_t part = input.bytes();
  for (int64_t begin = 0; begin < part; begin += kSlotBytes) {
    const int64_t bytes = std::min(kSlotBytes, part - begin);
    RETURN_IF_ERROR(Round(
        run,
        [&](char* slot) {
          const char* from = input.data<char>() + begin;
          std::memcpy(slot, from, bytes);
          char* const to = output.data<char>() + rank * part + begin;
          if (to != from) std::memcpy(to, from, bytes);
        },
        [&] {
          for (int step = 1; step < size; ++step) {
            const int peer = (rank + step) % size;
            std::memcpy(output.data<char>() + peer * part + begin,
                        run.channel.slot(peer), bytes);
          }
        }));
  }
  return absl::OkStatus();
}

absl::Status SharedBroadcast(const SharedRun& run, const Tensor& tensor,
                             int root) {
  const bool sends = run.channel.rank() == root;
  for (int64_t begin = 0; begin < tensor.bytes(); begin += kSlotBytes) {
    char* const own = tensor.data<char>() + begin;
    const int64_t bytes = std::min(kSlotBytes, tensor.bytes() - begin);
    RETURN_IF_ERROR(Round(
        run,
        [&](char* slot) {
          if (sends) std::memcpy(slot, own, bytes);
        },
        [&] {
          if (!sends) std::memcpy(own, run.channel.slot(root), bytes);
        }));
  }
  return absl::OkStatus();
}

absl::Status SharedBarrier(const SharedRun& run) {
  return Round(
      run, [](char*) {}, [] {});
}

}  // namespace lockstep
