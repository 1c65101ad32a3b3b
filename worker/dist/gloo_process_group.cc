#include "worker/dist/gloo_process_group.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/status_macros.h"
#include "worker/dist/collective_checks.h"
#include "worker/dist/direct_collectives.h"
#include "worker/dist/launched_work.h"
#include "worker/dist/slot.h"

namespace lockstep {
namespace {

// What a collective looks like to the others: ranks whose collectives differ
// get different slots, so their messages never meet.
struct Signature {
  CollectiveKind kind = CollectiveKind::kBarrier;
  uint64_t sequence = 0;
  uint64_t bytes = 0;
  DType dtype = DType::kFloat32;
  // ReduceOp or root.
  int detail = 0;
};

uint64_t SlotOf(const Signature& signature) {
  // All-to-all mixes in the bytes of each pair itself.
  const bool uneven = signature.kind == CollectiveKind::kAllToAll;
  return SlotOfValues({static_cast<uint64_t>(signature.kind),
                       signature.sequence, uneven ? 0 : signature.bytes,
                       static_cast<uint64_t>(signature.dtype),
                       static_cast<uint64_t>(signature.detail)});
}

class GlooProcessGroup : public ProcessGroup {
 public:
  GlooProcessGroup(const GlooProcessGroupOptions& options,
                   std::unique_ptr<GlooLink> link,
                   std::unique_ptr<SharedMemoryChannel> shared)
      : options_(options),
        link_(std::move(link)),
        shared_(std::move(shared)),
        sends_to_(options.size),
        receives_from_(options.size) {}

  // Launched work must be over (waited for, or aborted).
  ~GlooProcessGroup() override {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &GlooProcessGroup::Idle));
  }

  const std::string& name() const override { return options_.name; }
  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }

  std::unique_ptr<Work> AllReduce(const Tensor& tensor, ReduceOp op) override {
    return Launch(
        {CollectiveKind::kAllReduce, 0, static_cast<uint64_t>(tensor.bytes()),
         tensor.dtype(), static_cast<int>(op)},
        CheckAllReduce(tensor), [tensor, op](const CollectiveRun& run) {
          return RunAllReduce(run, tensor, op);
        });
  }

  std::unique_ptr<Work> Reduce(const Tensor& tensor, ReduceOp op,
                               int root) override {
    return Launch(
        {CollectiveKind::kReduce, 0, static_cast<uint64_t>(tensor.bytes()),
         tensor.dtype(), 2 * root + static_cast<int>(op)},
        CheckReduce(*this, tensor, root),
        [tensor, op, root](const CollectiveRun& run) {
          return RunReduce(run, tensor, op, root);
        });
  }

  std::unique_ptr<Work> ReduceScatter(const Tensor& input, const Tensor& output,
                                      ReduceOp op) override {
    return Launch({CollectiveKind::kReduceScatter, 0,
                   static_cast<uint64_t>(input.bytes()), input.dtype(),
                   static_cast<int>(op)},
                  CheckReduceScatter(*this, input, output),
                  [input, output, op](const CollectiveRun& run) {
                    return RunReduceScatter(run, input, output, op);
                  });
  }

  std::unique_ptr<Work> AllGather(const Tensor& input,
                                  const Tensor& output) override {
    return Launch({CollectiveKind::kAllGather, 0,
                   static_cast<uint64_t>(input.bytes()), input.dtype()},
                  CheckAllGather(*this, input, output),
                  [input, output](const CollectiveRun& run) {
                    return RunAllGather(run, input, output);
                  });
  }

  std::unique_ptr<Work> AllToAll(absl::Span<const Tensor> input,
                                 absl::Span<const Tensor> output) override;

  std::unique_ptr<Work> Broadcast(const Tensor& tensor, int root) override {
    return Launch({CollectiveKind::kBroadcast, 0,
                   static_cast<uint64_t>(tensor.bytes()), tensor.dtype(), root},
                  CheckBroadcast(*this, tensor, root),
                  [tensor, root](const CollectiveRun& run) {
                    return RunBroadcast(run, tensor, root);
                  });
  }

  std::unique_ptr<Work> Exchange(
      absl::Span<const PeerTransfer> transfers) override;

  std::unique_ptr<Work> Barrier() override {
    return Launch({CollectiveKind::kBarrier}, absl::OkStatus(),
                  [](const CollectiveRun& run) { return RunBarrier(run); });
  }

  void Abort() override {
    const absl::Status aborted = absl::AbortedError("the group was aborted");
    link_->Fail(aborted).IgnoreError();
    if (shared_ != nullptr) shared_->Fail(aborted);
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &GlooProcessGroup::Still));
  }

 private:
  using Runner = std::function<absl::Status(const CollectiveRun&)>;

  // Runs `runner` on the communication thread. Fills in the sequence.
  std::unique_ptr<Work> Launch(Signature signature, absl::Status check,
                               Runner runner);
  // On the communication thread.
  absl::Status Run(const Signature& signature, const Runner& runner);
  absl::Status Annotate(const Signature& signature,
                        const absl::Status& status) const;

  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return launched_ == 0;
  }
  bool Still() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !running_; }

  // Constant after construction.
  const GlooProcessGroupOptions options_;
  const std::unique_ptr<GlooLink> link_;
  // Null where not all ranks are on one host.
  const std::unique_ptr<SharedMemoryChannel> shared_;

  // The communication thread's: says which collective it was that failed.
  absl::Status failure_;

  // The issuing thread's. Exchanges are numbered apart, and by peer, as not
  // every rank takes part in all of them.
  uint64_t collectives_ = 0;
  uint64_t exchanges_ = 0;
  std::vector<uint64_t> sends_to_;
  std::vector<uint64_t> receives_from_;

  absl::Mutex mutex_;
  int64_t launched_ ABSL_GUARDED_BY(mutex_) = 0;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status GlooProcessGroup::Annotate(const Signature& signature,
                                        const absl::Status& status) const {
  if (status.ok()) return status;
  const std::string sequence =
      signature.sequence > 0 ? absl::StrCat(" ", signature.sequence) : "";
  return absl::Status(
      status.code(),
      absl::StrCat("rank ", options_.rank, " of group ", options_.name, " (",
                   options_.size, " ranks): ", Name(signature.kind), sequence,
                   " of ", signature.bytes, " bytes: ", status.message()));
}

std::unique_ptr<Work> GlooProcessGroup::Launch(Signature signature,
                                               absl::Status check,
                                               Runner runner) {
  if (!check.ok()) {
    return std::make_unique<FinishedWork>(Annotate(signature, check));
  }
  signature.sequence = signature.kind == CollectiveKind::kExchange
                           ? ++exchanges_
                           : ++collectives_;
  uint64_t record = 0;
  if (options_.ring != nullptr) {
    record = options_.ring->Begin(options_.name, signature.kind,
                                  signature.sequence, signature.bytes);
  }
  {
    absl::MutexLock lock(&mutex_);
    ++launched_;
  }
  auto completion = std::make_shared<Completion>();
  options_.thread->Launch(
      [this, signature, record, completion, runner = std::move(runner)] {
        CollectiveRing* const ring = options_.ring;
        if (ring != nullptr) ring->SetState(record, CollectiveState::kRunning);
        absl::Status status = Run(signature, runner);
        if (ring != nullptr) {
          ring->SetState(record, status.ok() ? CollectiveState::kDone
                                             : CollectiveState::kFailed);
        }
        {
          absl::MutexLock lock(&mutex_);
          --launched_;
        }
        // The group may be gone from here on.
        completion->Finish(std::move(status));
      });
  return std::make_unique<LaunchedWork>(std::move(completion));
}

absl::Status GlooProcessGroup::Run(const Signature& signature,
                                   const Runner& runner) {
  {
    absl::MutexLock lock(&mutex_);
    running_ = true;
  }
  if (failure_.ok()) {
    absl::Status status = link_->status();
    if (status.ok()) {
      const uint64_t slot = SlotOf(signature);
      if (shared_ != nullptr) shared_->Begin(slot);
      status = runner(CollectiveRun{*link_, shared_.get(), *options_.allocator,
                                    absl::Now() + options_.collective_timeout,
                                    slot});
      // Peers wait for this rank's part: they must learn that it won't come.
      // The first failure counts, an abort say.
      if (!status.ok()) {
        status = link_->Fail(status);
        if (shared_ != nullptr) shared_->Fail(status);
      }
    }
    failure_ = Annotate(signature, status);
  }
  absl::MutexLock lock(&mutex_);
  running_ = false;
  return failure_;
}

std::unique_ptr<Work> GlooProcessGroup::AllToAll(
    absl::Span<const Tensor> input, absl::Span<const Tensor> output) {
  Signature signature = {CollectiveKind::kAllToAll};
  for (const Tensor& tensor : input) signature.bytes += tensor.bytes();
  return Launch(signature, CheckAllToAll(*this, input, output),
                [input = std::vector<Tensor>(input.begin(), input.end()),
                 output = std::vector<Tensor>(output.begin(), output.end())](
                    const CollectiveRun& run) {
                  return RunAllToAll(run, input, output);
                });
}

std::unique_ptr<Work> GlooProcessGroup::Exchange(
    absl::Span<const PeerTransfer> transfers) {
  Signature signature = {CollectiveKind::kExchange};
  for (const PeerTransfer& transfer : transfers) {
    signature.bytes += transfer.tensor.bytes();
  }
  absl::Status check = CheckExchange(*this, transfers);
  std::vector<uint64_t> slots;
  for (const PeerTransfer& transfer : transfers) {
    if (!check.ok()) break;
    std::vector<uint64_t>& counts =
        transfer.direction == PeerTransfer::Direction::kSend ? sends_to_
                                                             : receives_from_;
    slots.push_back(SlotOf({CollectiveKind::kExchange, ++counts[transfer.peer],
                            static_cast<uint64_t>(transfer.tensor.bytes()),
                            transfer.tensor.dtype()}));
  }
  return Launch(signature, std::move(check),
                [transfers = std::vector<PeerTransfer>(transfers.begin(),
                                                       transfers.end()),
                 slots = std::move(slots)](const CollectiveRun& run) {
                  return RunExchange(run, transfers, slots);
                });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> MakeGlooProcessGroup(
    const GlooProcessGroupOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("group ", options.name, " has rank ", options.rank, " of ",
                     options.size, " ranks"));
  }
  GlooLinkOptions link_options;
  link_options.group = options.name;
  link_options.rank = options.rank;
  link_options.size = options.size;
  link_options.store = options.store;
  link_options.key_prefix = options.key_prefix;
  link_options.device = options.device;
  link_options.connect_timeout = options.connect_timeout;
  ASSIGN_OR_RETURN(std::unique_ptr<GlooLink> link,
                   GlooLink::Connect(link_options));
  std::unique_ptr<SharedMemoryChannel> shared;
  if (options.shared_memory == SharedMemory::kWhereOneHost &&
      options.size > 1) {
    ASSIGN_OR_RETURN(
        shared, SharedMemoryChannel::Connect(
                    {options.name, options.rank, options.size, options.store,
                     options.key_prefix, options.connect_timeout}));
  }
  return std::make_unique<GlooProcessGroup>(options, std::move(link),
                                            std::move(shared));
}

}  // namespace lockstep
