// StrCat of ours: absl::StrCat that takes std::string_view too. The Abseil
// release in use has a string_view of its own that doesn't convert from it.
#ifndef LOCKSTEP_WORKER_DATA_STR_CAT_H_
#define LOCKSTEP_WORKER_DATA_STR_CAT_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace lockstep {

inline absl::string_view AbslView(std::string_view text) {
  return {text.data(), text.size()};
}

namespace str_cat_internal {

template <typename T>
decltype(auto) Argument(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return AbslView(value);
  } else {
    return (value);
  }
}

}  // namespace str_cat_internal

template <typename... Arguments>
std::string StrCat(const Arguments&... arguments) {
  return absl::StrCat(str_cat_internal::Argument(arguments)...);
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_STR_CAT_H_
