#include "worker/train/rank_context.h"

namespace lockstep {

RankGroups GroupsOf(const DeviceMesh& mesh) {
  return {.world = mesh.world(),
          .data = mesh.data(),
          .shards = mesh.group(MeshAxis::kFsdp),
          .replicas = mesh.group(MeshAxis::kDp),
          .tensor = mesh.group(MeshAxis::kTp),
          .stages = mesh.group(MeshAxis::kPp),
          .peers = mesh.peers()};
}

RankGroups OneRankGroups(ProcessGroup& group) {
  return {.world = group,
          .data = group,
          .shards = group,
          .replicas = group,
          .tensor = group,
          .stages = group};
}

void RankGroups::AbortAll() const {
  for (ProcessGroup* group :
       {&world, &data, &shards, &replicas, &tensor, &stages}) {
    group->Abort();
  }
  if (peers != nullptr) peers->Abort();
}

}  // namespace lockstep
