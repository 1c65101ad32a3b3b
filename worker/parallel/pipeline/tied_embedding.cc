#include "worker/parallel/pipeline/tied_embedding.h"

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"
#include "kernels/owned_tensor.h"
#include "worker/dist/slot.h"

namespace lockstep {
namespace {

// Apart from the tags of a pipeline's own messages.
constexpr uint64_t kTagOfTied = 0x7469656400000000;

absl::Status AddOther(const PipelinePlace& place, Stream& stream,
                      const Tensor& gradient, uint64_t tag) {
  const bool first = place.rank == 0;
  const int other = first ? place.ranks - 1 : 0;
  ASSIGN_OR_RETURN(
      const OwnedTensor theirs,
      AllocateTensor(stream, DType::kFloat32, {gradient.elements()},
                     MemoryCategory::kBuffer, RowPadding::kDense));
  const std::unique_ptr<Work> receive = place.link->Receive(other, tag, theirs);
  const std::unique_ptr<Work> send = place.link->Send(other, tag, gradient);
  const absl::Status status = [&]() -> absl::Status {
    RETURN_IF_ERROR(receive->Wait());
    return send->Wait();
  }();
  if (!status.ok()) {
    // Nothing may be under way on memory that goes.
    place.link->Abort();
    return status;
  }
  // A sum of two has the same bits either way around.
  return ops::Add(stream, gradient, theirs, gradient);
}

}  // namespace

absl::Status SumTiedGradients(const PipelinePlace& place, Stream& stream,
                              const ParameterStore& store, uint64_t step) {
  for (size_t s = 0; s < store.segments().size(); ++s) {
    const Segment& segment = store.segments()[s];
    if (!store.tensors()[segment.first_tensor].on_two_stages) continue;
    RETURN_IF_ERROR(AddOther(place, stream, store.gradient(static_cast<int>(s)),
                             SlotOfValues({kTagOfTied, step})));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
