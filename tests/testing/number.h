// Number: a JSON value as a number, whether it is written as one or, as proto
// JSON writes 64-bit integers, as a string.
#ifndef LOCKSTEP_TESTS_TESTING_NUMBER_H_
#define LOCKSTEP_TESTS_TESTING_NUMBER_H_

#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace testing {

// NaN, which equals nothing, if it is neither.
inline double Number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  double number = std::numeric_limits<double>::quiet_NaN();
  if (value.is_string() &&
      !absl::SimpleAtod(value.get<std::string>(), &number)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return number;
}

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_NUMBER_H_
