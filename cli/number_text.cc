#include "cli/number_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {

std::string ShortCount(double count) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  if (!std::isfinite(count) || count < 0.0) return "?";
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < std::size(kUnits)) {
    count /= 1000.0;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%.0f", count);
  const int digits = count < 9.995 ? 2 : count < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f%s", digits, count, kUnits[unit]);
}

std::string GroupedCount(int64_t count) {
  std::string digits = absl::StrCat(count);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string LossText(double loss) { return absl::StrFormat("%.4f", loss); }

std::string ShortDuration(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(
      0, absl::ToInt64Seconds(duration + absl::Milliseconds(500)));
  if (seconds < 60) return absl::StrFormat("%ds", seconds);
  if (seconds < 3600) {
    return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  }
  const int64_t minutes = seconds / 60;
  if (minutes < 24 * 60) {
    return absl::StrFormat("%dh%02dm", minutes / 60, minutes % 60);
  }
  const int64_t hours = minutes / 60;
  return absl::StrFormat("%dd%02dh", hours / 24, hours % 24);
}

absl::Time ToTime(const google::protobuf::Timestamp& stamp) {
  return absl::FromUnixSeconds(stamp.seconds()) +
         absl::Nanoseconds(stamp.nanos());
}

std::string Age(const google::protobuf::Timestamp& stamp, absl::Time now) {
  if (stamp.seconds() == 0) return "-";
  return ShortDuration(now - ToTime(stamp));
}

}  // namespace lockstep
