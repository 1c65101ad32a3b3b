// LocalProcessGroup: the group of one rank. Its collectives are copies, done
// when the call returns, with the checks of every other group: nothing needs to
// know whether it is distributed.
//
// Threads: one thread issues; Abort may be called from any thread.
#ifndef LOCKSTEP_WORKER_DIST_LOCAL_PROCESS_GROUP_H_
#define LOCKSTEP_WORKER_DIST_LOCAL_PROCESS_GROUP_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/dist/process_group.h"

namespace lockstep {

class LocalProcessGroup : public ProcessGroup {
 public:
  explicit LocalProcessGroup(std::string name);

  const std::string& name() const override { return name_; }
  int rank() const override { return 0; }
  int size() const override { return 1; }

  std::unique_ptr<Work> AllReduce(const Tensor& tensor, ReduceOp op) override;
  std::unique_ptr<Work> Reduce(const Tensor& tensor, ReduceOp op,
                               int root) override;
  std::unique_ptr<Work> ReduceScatter(const Tensor& input, const Tensor& output,
                                      ReduceOp op) override;
  std::unique_ptr<Work> AllGather(const Tensor& input,
                                  const Tensor& output) override;
  std::unique_ptr<Work> AllToAll(absl::Span<const Tensor> input,
                                 absl::Span<const Tensor> output) override;
  std::unique_ptr<Work> Broadcast(const Tensor& tensor, int root) override;
  std::unique_ptr<Work> Exchange(
      absl::Span<const PeerTransfer> transfers) override;
  std::unique_ptr<Work> Barrier() override;
  void Abort() override { aborted_.store(true); }

 private:
  // OK when `check` is and the group isn't aborted.
  absl::Status Begin(absl::string_view collective, absl::Status check) const;

  const std::string name_;
  std::atomic<bool> aborted_{false};
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_LOCAL_PROCESS_GROUP_H_
