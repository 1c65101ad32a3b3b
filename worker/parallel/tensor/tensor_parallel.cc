#include "worker/parallel/tensor/tensor_parallel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/model/model_part.h"
#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "worker/nn/pass_context.h"

namespace lockstep {
namespace {

// Starts the collective that `launch` launches and keeps it for a later wait.
std::function<absl::Status()> WaitFor(std::unique_ptr<Work> work) {
  return
      [work = std::shared_ptr<Work>(std::move(work))] { return work->Wait(); };
}

class TensorParallel : public TensorRegions {
 public:
  TensorParallel(ProcessGroup& group, SequenceParallel sequence)
      : group_(group), sequence_(sequence) {}

  RowPart row_part() const override {
    if (sequence_ == SequenceParallel::kOff) return {};
    return {group_.rank(), group_.size()};
  }
  bool adds_bias() const override { return group_.rank() == 0; }

  absl::StatusOr<Tensor> Whole(const PassContext& context, const Tensor& own,
                               OwnedTensor& storage) override;
  absl::StatusOr<PendingRows> BeginSum(const PassContext& context,
                                       OwnedTensor partial) override;
  absl::Status CrossEntropy(const PassContext& context, const Tensor& logits,
                            const Tensor& targets, int64_t first_id,
                            LogitsGradient gradient, const Tensor& loss,
                            const Tensor& correct) override;
  absl::StatusOr<OwnedTensor> WholeLogits(const PassContext& context,
                                          OwnedTensor part,
                                          int64_t vocabulary) override;

 private:
  ProcessGroup& group_;
  const SequenceParallel sequence_;
};

absl::StatusOr<Tensor> TensorParallel::Whole(const PassContext& context,
                                             const Tensor& own,
                                             OwnedTensor& storage) {
  if (sequence_ == SequenceParallel::kOff) return own;
  ASSIGN_OR_RETURN(storage,
                   context.Activation(own.rows() * group_.size(), own.cols()));
  RETURN_IF_ERROR(
      group_.AllGather(own.WithPadding(), storage->WithPadding())->Wait());
  return storage.get();
}

absl::StatusOr<PendingRows> TensorParallel::BeginSum(const PassContext& context,
                                                     OwnedTensor partial) {
  if (sequence_ == SequenceParallel::kOff) {
    auto wait =
        WaitFor(group_.AllReduce(partial->WithPadding(), ReduceOp::kSum));
    return PendingRows(std::move(partial), OwnedTensor(), std::move(wait));
  }
  ASSIGN_OR_RETURN(
      OwnedTensor own,
      context.Activation(partial->rows() / group_.size(), partial->cols()));
  auto wait = WaitFor(group_.ReduceScatter(partial->WithPadding(),
                                           own->WithPadding(), ReduceOp::kSum));
  return PendingRows(std::move(partial), std::move(own), std::move(wait));
}

absl::Status TensorParallel::CrossEntropy(
    const PassContext& context, const Tensor& logits, const Tensor& targets,
    int64_t first_id, LogitsGradient gradient, const Tensor& loss,
    const Tensor& correct) {
  const int64_t rows = logits.rows();
  ASSIGN_OR_RETURN(
      const OwnedTensor statistics,
      AllocateTensor(context.stream, DType::kFloat32,
                     {rows * group_.size(), ops::kCrossEntropyStatistics},
                     MemoryCategory::kActivation, RowPadding::kDense));
  const Tensor own = statistics->Rows(group_.rank() * rows, rows);
  RETURN_IF_ERROR(ops::CrossEntropyStatistics(context.stream, logits, targets,
                                              first_id, own));
  RETURN_IF_ERROR(group_.AllGather(own, statistics)->Wait());
  return ops::CrossEntropyFromStatistics(context.stream, logits, targets,
                                         first_id, statistics, context.scalars,
                                         gradient, loss, correct);
}

absl::StatusOr<OwnedTensor> TensorParallel::WholeLogits(
    const PassContext& context, OwnedTensor part, int64_t vocabulary) {
  // Parts differ by one id at most: each travels as the longest would.
  const int64_t longest = (vocabulary + group_.size() - 1) / group_.size();
  std::vector<float> host(longest, 0.0f);
  RETURN_IF_ERROR(ops::CopyToHost(
      context.stream, part->Rows(0, 1).WithPadding().Slice(0, part->cols()),
      host.data()));
  ASSIGN_OR_RETURN(
      const OwnedTensor all,
      AllocateTensor(context.stream, DType::kFloat32, {group_.size(), longest},
                     MemoryCategory::kActivation, RowPadding::kDense));
  const Tensor own = all->Rows(group_.rank(), 1);
  RETURN_IF_ERROR(ops::CopyFromHost(context.stream, host.data(), own));
  RETURN_IF_ERROR(group_.AllGather(own, all)->Wait());
  host.resize(longest * group_.size());
  RETURN_IF_ERROR(ops::CopyToHost(context.stream, all, host.data()));
  std::vector<float> whole;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const float* begin = host.data() + rank * longest;
    whole.insert(whole.end(), begin,
                 begin + PortionOf(vocabulary, rank, group_.size()).size());
  }
  ASSIGN_OR_RETURN(
      OwnedTensor logits,
      AllocateTensor(context.stream, DType::kFloat32, {1, vocabulary},
                     MemoryCategory::kActivation, RowPadding::kDense));
  RETURN_IF_ERROR(ops::CopyFromHost(context.stream, whole.data(), logits));
  return logits;
}

}  // namespace

std::unique_ptr<TensorRegions> MakeTensorRegions(ProcessGroup& group,
                                                 SequenceParallel sequence) {
  if (group.size() == 1) return std::make_unique<LocalRegions>();
  return std::make_unique<TensorParallel>(group, sequence);
}

}  // namespace lockstep
