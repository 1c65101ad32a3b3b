// Ids: distinct types for the names of distinct things, and random ones.
#ifndef LOCKSTEP_COMMON_IDS_H_
#define LOCKSTEP_COMMON_IDS_H_

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// A string that names one kind of thing; ids of different kinds don't mix.
// Ordered and hashable.
template <typename Tag>
class StringId {
 public:
  StringId() = default;
  explicit StringId(std::string value) : value_(std::move(value)) {}

  const std::string& value() const { return value_; }
  bool empty() const { return value_.empty(); }

  friend bool operator==(const StringId&, const StringId&) = default;
  friend auto operator<=>(const StringId&, const StringId&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StringId& id) {
    return out << id.value_;
  }
  template <typename H>
  friend H AbslHashValue(H hash, const StringId& id) {
    return H::combine(std::move(hash), id.value_);
  }

 private:
  std::string value_;
};

using JobId = StringId<struct JobIdTag>;
using WorkerName = StringId<struct WorkerNameTag>;

// `characters` of the kernel's randomness, five bits each, as lower-case
// letters and digits (base32 without i, l, o, u). 26 and more are unguessable:
// good for tokens and secrets.
std::string RandomBase32(int characters);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IDS_H_
