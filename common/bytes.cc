#include "common/bytes.h"

#include <array>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

struct Unit {
  absl::string_view word;
  uint64_t bytes;
};

constexpr std::array<Unit, 11> kUnits = {{
    {"B", 1},
    {"KB", 1000},
    {"MB", 1000'000},
    {"GB", 1000'000'000},
    {"TB", 1000'000'000'000},
    {"PB", 1000'000'000'000'000},
    {"KiB", uint64_t{1} << 10},
    {"MiB", uint64_t{1} << 20},
    {"GiB", uint64_t{1} << 30},
    {"TiB", uint64_t{1} << 40},
    {"PiB", uint64_t{1} << 50},
}};

absl::Status BadSize(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("size '", text, "' ", why,
                   "; want a number of bytes, or a number with KB, MB, GB, TB, "
                   "PB, KiB, MiB, GiB, TiB or PiB, as in 512MiB"));
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(std::string_view bytes_text) {
  const absl::string_view text(bytes_text.data(), bytes_text.size());
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  const size_t digits = trimmed.find_first_not_of("0123456789.");
  const absl::string_view number = trimmed.substr(0, digits);
  const absl::string_view word =
      digits == absl::string_view::npos
          ? absl::string_view("B")
          : absl::StripLeadingAsciiWhitespace(trimmed.substr(digits));
  if (number.empty()) return BadSize(text, "doesn't start with a number");
  uint64_t unit = 0;
  for (const Unit& candidate : kUnits) {
    if (candidate.word == word) unit = candidate.bytes;
  }
  if (unit == 0) return BadSize(text, "has an unknown unit");
  if (uint64_t whole = 0; absl::SimpleAtoi(number, &whole)) {
    if (whole > std::numeric_limits<uint64_t>::max() / unit) {
      return BadSize(text, "is more than 64 bits hold");
    }
    return whole * unit;
  }
  double fraction = 0;
  if (!absl::SimpleAtod(number, &fraction)) {
    return BadSize(text, "has a malformed number");
  }
  const double bytes = std::floor(fraction * static_cast<double>(unit));
  if (!(bytes < 0x1p63)) return BadSize(text, "is more than 64 bits hold");
  return static_cast<uint64_t>(bytes);
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<absl::string_view, 6> kWords = {"B",   "KiB", "MiB",
                                                       "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t word = 0;
  // 1023.5 would print as 1024 of the smaller unit.
  while (value >= 1023.5 && word + 1 < kWords.size()) {
    value /= 1024;
    ++word;
  }
  if (word == 0 || value == std::floor(value)) {
    return absl::StrFormat("%.0f %s", value, kWords[word]);
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, value, kWords[word]);
}

std::string FormatBytesExact(uint64_t bytes) {
  const Unit* best = &kUnits[0];
  for (const Unit& unit : kUnits) {
    if (bytes != 0 && bytes % unit.bytes == 0 && unit.bytes > best->bytes) {
      best = &unit;
    }
  }
  if (best == &kUnits[0]) return absl::StrCat(bytes);
  return absl::StrCat(bytes / best->bytes, best->word);
}

absl::StatusOr<absl::Duration> ParseDuration(std::string_view duration_text) {
  const absl::string_view text(duration_text.data(), duration_text.size());
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) ||
      duration < absl::ZeroDuration() || duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("time '", text,
                     "' is malformed; want a number with ms, s, m or h, as in "
                     "15s or 1h30m"));
  }
  return duration;
}

}  // namespace lockstep
