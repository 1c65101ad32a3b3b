// DeviceMesh: the ranks of a gang as a grid with one axis per kind of
// parallelism, and this rank's process group along each axis.
//
//   ASSIGN_OR_RETURN(auto mesh, DeviceMesh::Create(layout, rank, world_size,
//                                                  factory));
//   mesh->group(MeshAxis::kDp).AllReduce(gradient, ReduceOp::kSum);
//
// A rank's number counts its coordinates with tp fastest, then cp, fsdp, dp and
// pp. Every axis has a group, of one rank where its degree is 1. All groups are
// made up front, in one order on all ranks: the world, then tp to pp, then
// cp x fsdp, then the links between pipeline stages.
//
// Threads: const functions may be called from any thread; Abort too.
#ifndef LOCKSTEP_WORKER_DIST_DEVICE_MESH_H_
#define LOCKSTEP_WORKER_DIST_DEVICE_MESH_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/v1/step_report.pb.h"
#include "worker/dist/group_factory.h"
#include "worker/dist/process_group.h"

namespace lockstep {

// In rank order, fastest first.
enum class MeshAxis : uint8_t { kTp, kCp, kFsdp, kDp, kPp };
inline constexpr int kMeshAxes = 5;
// "tp", ...
const char* Name(MeshAxis axis);

class DeviceMesh {
 public:
  // Blocks until all ranks have come. INVALID_ARGUMENT when a degree is below 1
  // or their product isn't `world_size`; else what `factory` says.
  static absl::StatusOr<std::unique_ptr<DeviceMesh>> Create(
      const v1::Layout& layout, int rank, int world_size,
      GroupFactory& factory);

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  int degree(MeshAxis axis) const { return Of(axis).degree; }
  // This rank's place on the axis; its rank in group(axis).
  int coordinate(MeshAxis axis) const { return Of(axis).coordinate; }

  ProcessGroup& world() const { return *world_; }
  ProcessGroup& group(MeshAxis axis) const { return *Of(axis).group; }

  // cp x fsdp: the ranks that share one replica's states, cp fastest.
  ProcessGroup& states() const;

  // Between pipeline stages; null where there is one.
  PeerLink* peers() const { return peers_.get(); }

  // Aborts all groups.
  void Abort();

 private:
  struct Axis {
    int degree = 1;
    int coordinate = 0;
    std::unique_ptr<ProcessGroup> group;
  };

  DeviceMesh(int rank, int world_size) : rank_(rank), world_size_(world_size) {}
  const Axis& Of(MeshAxis axis) const {
    return axes_[static_cast<size_t>(axis)];
  }

  absl::Status MakeStates(GroupFactory& factory);
  absl::Status MakePeers(GroupFactory& factory);

  // Constant once Create has returned.
  const int rank_;
  const int world_size_;
  std::unique_ptr<ProcessGroup> world_;
  std::array<Axis, kMeshAxes> axes_;
  // Null where one of its axes is all of it.
  std::unique_ptr<ProcessGroup> states_;
  std::unique_ptr<PeerLink> peers_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_DEVICE_MESH_H_
