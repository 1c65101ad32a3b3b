// PieceTrie: finds which of a set of byte strings a text starts with.
#ifndef LOCKSTEP_WORKER_DATA_PIECE_TRIE_H_
#define LOCKSTEP_WORKER_DATA_PIECE_TRIE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace lockstep {

// Threads: const functions may be called from any thread.
class PieceTrie {
 public:
  PieceTrie();
  // Adds `piece`, not empty, under `id`. The first id of a piece stays.
  void Add(std::string_view piece, int32_t id);

  // Calls `visit(bytes, id)` for each piece that `text` starts with, shortest
  // first.
  template <typename Visit>
  void Prefixes(std::string_view text, Visit visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (i == 0) {
        node = first_[byte];
      } else {
        const auto next = next_.find(Edge(node, byte));
        node = next == next_.end() ? 0 : next->second;
      }
      if (node == 0) return;
      if (ids_[node] >= 0) visit(i + 1, ids_[node]);
    }
  }

 private:
  static uint64_t Edge(uint32_t node, unsigned char byte) {
    return (uint64_t{node} << 8) | byte;
  }

  // Children of the root by byte; the root, 0, stands for "none".
  std::vector<uint32_t> first_;
  absl::flat_hash_map<uint64_t, uint32_t> next_;
  std::vector<int32_t> ids_;  // of each node; negative where no piece ends
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_PIECE_TRIE_H_
