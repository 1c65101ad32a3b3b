#include "worker/train/guard.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files/content_hash.h"
#include "common/status_macros.h"
#include "worker/train/failure.h"
#include "worker/train/gather.h"

namespace lockstep {
namespace {

// One value kind of one piece of a logical tensor, and its hash: "3 128 64
// parameter" is elements [128, 192) of the parameter of tensor 3.
using Hashes = std::map<std::string, std::string>;

std::string HashOf(const Tensor& shard, const FlatRange& range) {
  return HashHex(std::string_view(
      reinterpret_cast<const char*>(shard.data<float>() + range.begin),
      range.size() * sizeof(float)));
}

// Of those pieces of this rank's shards whose tensors `wanted` accepts.
Hashes HashPieces(const TrainingState& state,
                  const std::function<bool(const LogicalTensor&)>& wanted) {
  const ParameterStore& store = *state.store;
  Hashes hashes;
  for (const ShardPiece& piece : store.pieces()) {
    const LogicalTensor& tensor = store.tensors()[piece.tensor];
    if (!wanted(tensor)) continue;
    const std::string place = absl::StrCat(
        tensor.index, " ", piece.tensor_offset, " ", piece.range.size(), " ");
    hashes[place + "parameter"] =
        HashOf(store.master(piece.segment), piece.range);
    if (state.optimizer == nullptr) continue;
    for (const OptimizerState& states : state.optimizer->states()) {
      const Tensor shard =
          states.values.Slice(store.shard_begin(piece.segment),
                              store.segments()[piece.segment].shard_elements);
      hashes[place + states.kind] = HashOf(shard, piece.range);
    }
  }
  return hashes;
}

std::string ToText(const Hashes& hashes) {
  std::string text;
  for (const auto& [what, hash] : hashes) {
    absl::StrAppend(&text, what, "=", hash, "\n");
  }
  return text;
}

Hashes FromText(const std::string& text) {
  Hashes hashes;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> entry =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    hashes.insert(entry);
  }
  return hashes;
}

// Compares what the ranks of `group` hold alike with this rank's.
absl::Status Compare(ProcessGroup& group, const TrainingState& state,
                     const Hashes& own) {
  if (group.size() == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   GatherBytes(group, ToText(own)));
  for (int rank = 0; rank < group.size(); ++rank) {
    const Hashes theirs = FromText(texts[rank]);
    for (const auto& [what, hash] : own) {
      const auto found = theirs.find(what);
      if (found == theirs.end() || found->second == hash) continue;
      const std::vector<std::string> parts = absl::StrSplit(what, ' ');
      std::string name = parts[0];
      for (const LogicalTensor& tensor : state.store->tensors()) {
        if (absl::StrCat(tensor.index) == parts[0]) name = tensor.name;
      }
      return WithCause(
          absl::DataLossError(absl::StrCat(
              "guard after step ", state.step, ": rank ", group.rank(),
              " of group ", group.name(), " holds another ", parts[3], " of ",
              name, " (elements ", parts[1], " + ", parts[2], ") than rank ",
              rank, ", which should be equal")),
          v1::CAUSE_DEVICE_FAULT);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEqualAcrossRanks(const RankContext& context,
                                   const TrainingState& state) {
  RETURN_IF_ERROR(
      Compare(context.replicas, state,
              HashPieces(state, [](const LogicalTensor&) { return true; })));
  RETURN_IF_ERROR(Compare(context.tensor, state,
                          HashPieces(state, [](const LogicalTensor& tensor) {
                            return tensor.held_shape == tensor.shape;
                          })));
  return Compare(context.stages, state,
                 HashPieces(state, [](const LogicalTensor& tensor) {
                   return tensor.on_two_stages;
                 }));
}

}  // namespace lockstep
