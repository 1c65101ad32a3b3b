#include "worker/data/piece_trie.h"

namespace lockstep {

PieceTrie::PieceTrie() : first_(256, 0), ids_(1, -1) {}

void PieceTrie::Add(std::string_view piece, int32_t id) {
  uint32_t node = 0;
  for (size_t i = 0; i < piece.size(); ++i) {
    const auto byte = static_cast<unsigned char>(piece[i]);
    uint32_t& child = i == 0 ? first_[byte] : next_[Edge(node, byte)];
    if (child == 0) {
      child = static_cast<uint32_t>(ids_.size());
      ids_.push_back(-1);
    }
    node = child;
  }
  if (ids_[node] < 0) ids_[node] = id;
}

}  // namespace lockstep
