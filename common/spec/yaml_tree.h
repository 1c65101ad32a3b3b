// YAML or JSON text as a tree that knows where each part stood. Hostile input
// is expected: what costs more than the text's length is refused while it is
// read.
#ifndef LOCKSTEP_COMMON_SPEC_YAML_TREE_H_
#define LOCKSTEP_COMMON_SPEC_YAML_TREE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

inline constexpr size_t kMostYamlBytes = size_t{1} << 20;
inline constexpr int kMostYamlDepth = 32;

struct YamlMember;

struct YamlNode {
  enum class Kind { kScalar, kSequence, kMapping };
  Kind kind = Kind::kScalar;
  // Both count from 1.
  int line = 1;
  int column = 1;
  std::string scalar;
  // The scalar was written without quotes.
  bool plain = false;
  std::vector<YamlNode> items;
  // In order; each key is a scalar; duplicates are kept.
  std::vector<YamlMember> members;

  // A scalar that stands for "nothing": empty, `~` or `null`, without quotes.
  bool IsNull() const;
};

struct YamlMember {
  YamlNode key;
  YamlNode value;
};

// The text's only document; a null scalar if it is empty.
//   INVALID_ARGUMENT "NAME:LINE:COLUMN: ..." for a syntax error, an alias,
//   anchor or tag, a key that is no scalar, a second document, text that isn't
//   UTF-8, more than kMostYamlBytes or deeper than kMostYamlDepth.
absl::StatusOr<YamlNode> ParseYaml(std::string_view text,
                                   std::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPEC_YAML_TREE_H_
