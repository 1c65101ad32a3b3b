#include "common/spec/spec_checks.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace lockstep::spec_internal {

absl::Status CheckRange(absl::string_view key, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", value, ", want ", least, " to ", most));
}

absl::Status CheckRequired(absl::string_view key, int64_t value, int64_t most) {
  if (value == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " is missing or 0, want 1 to ", most));
  }
  return CheckRange(key, value, 1, most);
}

absl::Status CheckPositive(absl::string_view key, double value) {
  if (std::isfinite(value) && value > 0.0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", value, ", want a finite number above 0"));
}

absl::Status CheckNotNegative(absl::string_view key, double value) {
  if (std::isfinite(value) && value >= 0.0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", value, ", want a finite number, at least 0"));
}

absl::Status CheckBelowOne(absl::string_view key, double value) {
  if (value >= 0.0 && value < 1.0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", value, ", want at least 0 and less than 1"));
}

absl::Status CheckNotOf(bool present, absl::string_view key,
                        absl::string_view owners, absl::string_view choice) {
  if (!present) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is a key of ", owners, ", not of ", choice));
}

}  // namespace lockstep::spec_internal
