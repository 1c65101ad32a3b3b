#include "worker/dist/collective_checks.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::Status CheckPlain(absl::string_view what, const Tensor& tensor) {
  if (tensor.device() != DeviceKind::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is not in host memory"));
  }
  if (!tensor.dense()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " has rows of ", tensor.cols(), " elements that are ",
        tensor.row_stride(), " apart, want dense"));
  }
  if (tensor.empty() && tensor.elements() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " has ", tensor.elements(), " elements and no memory"));
  }
  return absl::OkStatus();
}

absl::Status CheckReducible(absl::string_view what, const Tensor& tensor) {
  RETURN_IF_ERROR(CheckPlain(what, tensor));
  if (tensor.dtype() != DType::kFloat32 && tensor.dtype() != DType::kBFloat16) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " is ", Name(tensor.dtype()), ", want fp32 or bf16"));
  }
  return absl::OkStatus();
}

absl::Status CheckRank(absl::string_view what, int rank, int size) {
  if (rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", rank, ", want 0 to ", size - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckSameDType(const Tensor& input, const Tensor& output) {
  if (input.dtype() != output.dtype()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input is ", Name(input.dtype()), " and output ",
                     Name(output.dtype())));
  }
  return absl::OkStatus();
}

// `large` has `size` times the elements of `small`; `small` is rank's part of
// it or apart from it.
absl::Status CheckParts(absl::string_view large_name, const Tensor& large,
                        absl::string_view small_name, const Tensor& small,
                        int rank, int size) {
  const int64_t want = size * small.elements();
  if (large.elements() != want) {
    return absl::InvalidArgumentError(
        absl::StrCat(large_name, " has ", large.elements(), " elements, want ",
                     want, " (", size, " ranks x ", small.elements(), ")"));
  }
  const char* large_begin = large.data<char>();
  const char* small_begin = small.data<char>();
  const bool apart = small_begin >= large_begin + large.bytes() ||
                     large_begin >= small_begin + small.bytes();
  if (!apart && small_begin != large_begin + rank * small.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(small_name, " overlaps ", large_name,
                     " and is not this rank's part of it"));
  }
  return absl::OkStatus();
}

bool Overlap(const Tensor& a, const Tensor& b) {
  return a.bytes() > 0 && b.bytes() > 0 &&
         a.data<char>() < b.data<char>() + b.bytes() &&
         b.data<char>() < a.data<char>() + a.bytes();
}

}  // namespace

absl::Status CheckAllReduce(const Tensor& tensor) {
  return CheckReducible("tensor", tensor);
}

absl::Status CheckReduce(const ProcessGroup& group, const Tensor& tensor,
                         int root) {
  RETURN_IF_ERROR(CheckRank("root", root, group.size()));
  return CheckReducible("tensor", tensor);
}

absl::Status CheckReduceScatter(const ProcessGroup& group, const Tensor& input,
                                const Tensor& output) {
  RETURN_IF_ERROR(CheckReducible("input", input));
  RETURN_IF_ERROR(CheckReducible("output", output));
  RETURN_IF_ERROR(CheckSameDType(input, output));
  return CheckParts("input", input, "output", output, group.rank(),
                    group.size());
}

absl::Status CheckAllGather(const ProcessGroup& group, const Tensor& input,
                            const Tensor& output) {
  RETURN_IF_ERROR(CheckPlain("input", input));
  RETURN_IF_ERROR(CheckPlain("output", output));
  RETURN_IF_ERROR(CheckSameDType(input, output));
  return CheckParts("output", output, "input", input, group.rank(),
                    group.size());
}

absl::Status CheckAllToAll(const ProcessGroup& group,
                           absl::Span<const Tensor> input,
                           absl::Span<const Tensor> output) {
  const size_t size = group.size();
  if (input.size() != size || output.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-to-all has ", input.size(), " inputs and ",
                     output.size(), " outputs, want ", size, " of each"));
  }
  for (size_t i = 0; i < size; ++i) {
    RETURN_IF_ERROR(CheckPlain(absl::StrCat("input ", i), input[i]));
    RETURN_IF_ERROR(CheckPlain(absl::StrCat("output ", i), output[i]));
    for (size_t k = 0; k < size; ++k) {
      if (Overlap(input[i], output[k]) ||
          (i != k && Overlap(output[i], output[k]))) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", k, " overlaps input or output ", i));
      }
    }
  }
  const size_t rank = group.rank();
  if (input[rank].bytes() != output[rank].bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", rank, " for this rank itself has ", input[rank].bytes(),
        " bytes, and its output ", output[rank].bytes()));
  }
  return absl::OkStatus();
}

absl::Status CheckBroadcast(const ProcessGroup& group, const Tensor& tensor,
                            int root) {
  RETURN_IF_ERROR(CheckRank("root", root, group.size()));
  return CheckPlain("tensor", tensor);
}

absl::Status CheckExchange(const ProcessGroup& group,
                           absl::Span<const PeerTransfer> transfers) {
  std::vector<int64_t> sent;
  std::vector<int64_t> received;
  for (size_t i = 0; i < transfers.size(); ++i) {
    const PeerTransfer& transfer = transfers[i];
    const std::string what = absl::StrCat("transfer ", i);
    RETURN_IF_ERROR(
        CheckRank(absl::StrCat("peer of ", what), transfer.peer, group.size()));
    RETURN_IF_ERROR(CheckPlain(what, transfer.tensor));
    if (transfer.peer != group.rank()) continue;
    (transfer.direction == PeerTransfer::Direction::kSend ? sent : received)
        .push_back(transfer.tensor.bytes());
  }
  if (sent != received) {
    return absl::InvalidArgumentError(absl::StrCat(
        "transfers of rank ", group.rank(), " with itself don't pair up: ",
        sent.size(), " sends, ", received.size(), " receives, or other sizes"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
