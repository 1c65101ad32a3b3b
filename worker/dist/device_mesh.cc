#include "worker/dist/device_mesh.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "worker/dist/local_process_group.h"

namespace lockstep {
namespace {

constexpr std::array<MeshAxis, kMeshAxes> kRankOrder = {
    MeshAxis::kTp, MeshAxis::kCp, MeshAxis::kFsdp, MeshAxis::kDp,
    MeshAxis::kPp};

int64_t DegreeOf(const v1::Layout& layout, MeshAxis axis) {
  switch (axis) {
    case MeshAxis::kTp:
      return layout.tp();
    case MeshAxis::kCp:
      return layout.cp();
    case MeshAxis::kFsdp:
      return layout.fsdp();
    case MeshAxis::kDp:
      return layout.dp();
    case MeshAxis::kPp:
      return layout.pp();
  }
  return 0;
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> MakeGroup(const GroupSpec& spec,
                                                        GroupFactory& factory) {
  if (spec.size == 1) return std::make_unique<LocalProcessGroup>(spec.name);
  return factory.Make(spec);
}

}  // namespace

const char* Name(MeshAxis axis) {
  switch (axis) {
    case MeshAxis::kTp:
      return "tp";
    case MeshAxis::kCp:
      return "cp";
    case MeshAxis::kFsdp:
      return "fsdp";
    case MeshAxis::kDp:
      return "dp";
    case MeshAxis::kPp:
      return "pp";
  }
  return "unknown";
}

absl::StatusOr<std::unique_ptr<DeviceMesh>> DeviceMesh::Create(
    const v1::Layout& layout, int rank, int world_size, GroupFactory& factory) {
  if (rank < 0 || rank >= world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " of a world of ", world_size));
  }
  int64_t product = 1;
  std::string degrees;
  for (MeshAxis axis : kRankOrder) {
    const int64_t degree = DegreeOf(layout, axis);
    absl::StrAppend(&degrees, degrees.empty() ? "" : " x ", Name(axis), " ",
                    degree);
    if (degree < 1 || degree > world_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("degree of ", Name(axis), " is ", degree, ", want 1 to ",
                       world_size, " (the world's ranks)"));
    }
    product *= degree;
  }
  if (product != world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh ", degrees, " has ", product, " ranks, want ",
                     world_size, " (the world's)"));
  }

  auto mesh = absl::WrapUnique(new DeviceMesh(rank, world_size));
  ASSIGN_OR_RETURN(mesh->world_,
                   MakeGroup({"world", rank, world_size, "world"}, factory));
  // Ranks from one to the next along the axis.
  int stride = 1;
  for (MeshAxis axis : kRankOrder) {
    Axis& here = mesh->axes_[static_cast<size_t>(axis)];
    here.degree = static_cast<int>(DegreeOf(layout, axis));
    here.coordinate = rank / stride % here.degree;
    // The group is named among its like by its lowest rank.
    const int lowest = rank - here.coordinate * stride;
    ASSIGN_OR_RETURN(here.group,
                     MakeGroup({Name(axis), here.coordinate, here.degree,
                                absl::StrCat(Name(axis), "-of-rank-", lowest)},
                               factory));
    stride *= here.degree;
  }
  RETURN_IF_ERROR(mesh->MakeStates(factory));
  RETURN_IF_ERROR(mesh->MakePeers(factory));
  return mesh;
}

absl::Status DeviceMesh::MakeStates(GroupFactory& factory) {
  const Axis& cp = Of(MeshAxis::kCp);
  const Axis& fsdp = Of(MeshAxis::kFsdp);
  if (cp.degree == 1 || fsdp.degree == 1) return absl::OkStatus();
  // fsdp comes after cp in rank order.
  const int stride = degree(MeshAxis::kTp);
  const int coordinate = fsdp.coordinate * cp.degree + cp.coordinate;
  ASSIGN_OR_RETURN(
      states_,
      MakeGroup({"states", coordinate, fsdp.degree * cp.degree,
                 absl::StrCat("states-of-rank-", rank_ - coordinate * stride)},
                factory));
  return absl::OkStatus();
}

ProcessGroup& DeviceMesh::states() const {
  if (states_ != nullptr) return *states_;
  return group(degree(MeshAxis::kCp) > 1 ? MeshAxis::kCp : MeshAxis::kFsdp);
}

absl::Status DeviceMesh::MakePeers(GroupFactory& factory) {
  const Axis& pp = Of(MeshAxis::kPp);
  if (pp.degree == 1) return absl::OkStatus();
  // pp is the slowest: the ranks of one stage are neighbours.
  const int ranks_per_stage = world_size_ / pp.degree;
  ASSIGN_OR_RETURN(
      peers_, factory.MakePeerLink(
                  {"pp", pp.coordinate, pp.degree,
                   absl::StrCat("peers-of-rank-", rank_ % ranks_per_stage)}));
  return absl::OkStatus();
}

void DeviceMesh::Abort() {
  world_->Abort();
  if (states_ != nullptr) states_->Abort();
  if (peers_ != nullptr) peers_->Abort();
  for (Axis& axis : axes_) axis.group->Abort();
}

}  // namespace lockstep
