#include "worker/train/rank_context.h"

namespace lockstep {

RankGroups GroupsOf(const DeviceMesh& mesh) {
  return {.world = mesh.world(),
          .shards = mesh.states(),
          .replicas = mesh.group(MeshAxis::kDp),
          .sequence = mesh.group(MeshAxis::kCp),
          .tensor = mesh.group(MeshAxis::kTp),
          .stages = mesh.group(MeshAxis::kPp),
          .peers = mesh.peers()};
}

RankGroups OneRankGroups(ProcessGroup& group) {
  return {.world = group,
          .shards = group,
          .replicas = group,
          .sequence = group,
          .tensor = group,
          .stages = group};
}

void RankGroups::AbortAll() const {
  for (ProcessGroup* group :
       {&world, &shards, &replicas, &sequence, &tensor, &stages}) {
    group->Abort();
  }
  if (peers != nullptr) peers->Abort();
}

}  // namespace lockstep
