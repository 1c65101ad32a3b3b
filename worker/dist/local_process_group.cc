#include "worker/dist/local_process_group.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/dist/collective_checks.h"
#include "worker/dist/collective_ring.h"
#include "worker/dist/launched_work.h"

namespace lockstep {
namespace {

void Copy(const Tensor& from, const Tensor& to) {
  if (from.raw() == to.raw() || from.bytes() == 0) return;
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

std::unique_ptr<Work> Finished(absl::Status status) {
  return std::make_unique<FinishedWork>(std::move(status));
}

}  // namespace

LocalProcessGroup::LocalProcessGroup(std::string name)
    : name_(std::move(name)) {}

absl::Status LocalProcessGroup::Begin(absl::string_view collective,
                                      absl::Status check) const {
  const std::string where =
      absl::StrCat("rank 0 of group ", name_, ": ", collective, ": ");
  if (aborted_.load()) {
    return absl::AbortedError(absl::StrCat(where, "the group was aborted"));
  }
  if (!check.ok()) {
    return absl::Status(check.code(), absl::StrCat(where, check.message()));
  }
  return absl::OkStatus();
}

std::unique_ptr<Work> LocalProcessGroup::AllReduce(const Tensor& tensor,
                                                   ReduceOp op) {
  return Finished(
      Begin(Name(CollectiveKind::kAllReduce), CheckAllReduce(tensor)));
}

std::unique_ptr<Work> LocalProcessGroup::Reduce(const Tensor& tensor,
                                                ReduceOp op, int root) {
  return Finished(
      Begin(Name(CollectiveKind::kReduce), CheckReduce(*this, tensor, root)));
}

std::unique_ptr<Work> LocalProcessGroup::ReduceScatter(const Tensor& input,
                                                       const Tensor& output,
                                                       ReduceOp op) {
  absl::Status status = Begin(Name(CollectiveKind::kReduceScatter),
                              CheckReduceScatter(*this, input, output));
  if (status.ok()) Copy(input, output);
  return Finished(std::move(status));
}

std::unique_ptr<Work> LocalProcessGroup::AllGather(const Tensor& input,
                                                   const Tensor& output) {
  absl::Status status = Begin(Name(CollectiveKind::kAllGather),
                              CheckAllGather(*this, input, output));
  if (status.ok()) Copy(input, output);
  return Finished(std::move(status));
}

std::unique_ptr<Work> LocalProcessGroup::AllToAll(
    absl::Span<const Tensor> input, absl::Span<const Tensor> output) {
  absl::Status status = Begin(Name(CollectiveKind::kAllToAll),
                              CheckAllToAll(*this, input, output));
  if (status.ok()) Copy(input[0], output[0]);
  return Finished(std::move(status));
}

std::unique_ptr<Work> LocalProcessGroup::Broadcast(const Tensor& tensor,
                                                   int root) {
  return Finished(Begin(Name(CollectiveKind::kBroadcast),
                        CheckBroadcast(*this, tensor, root)));
}

std::unique_ptr<Work> LocalProcessGroup::Exchange(
    absl::Span<const PeerTransfer> transfers) {
  absl::Status status =
      Begin(Name(CollectiveKind::kExchange), CheckExchange(*this, transfers));
  if (!status.ok()) return Finished(std::move(status));
  std::vector<const Tensor*> sends;
  for (const PeerTransfer& transfer : transfers) {
    if (transfer.direction == PeerTransfer::Direction::kSend) {
      sends.push_back(&transfer.tensor);
    }
  }
  size_t next = 0;
  for (const PeerTransfer& transfer : transfers) {
    if (transfer.direction == PeerTransfer::Direction::kReceive) {
      Copy(*sends[next++], transfer.tensor);
    }
  }
  return Finished(absl::OkStatus());
}

std::unique_ptr<Work> LocalProcessGroup::Barrier() {
  return Finished(Begin(Name(CollectiveKind::kBarrier), absl::OkStatus()));
}

}  // namespace lockstep
