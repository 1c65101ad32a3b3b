// Sizes and times as people write them: "512MiB", "80GB", "15s", "2m".
#ifndef LOCKSTEP_COMMON_BYTES_H_
#define LOCKSTEP_COMMON_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

// A plain number of bytes, or a number with B, KB, MB, GB, TB, PB (powers of
// 1000) or KiB, MiB, GiB, TiB, PiB (powers of 1024); a fraction ("1.5GiB") is
// rounded down to bytes. INVALID_ARGUMENT names the text and what is allowed.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

// For people: "412 B", "1.50 GiB", "512 MiB"; three significant digits.
std::string FormatBytes(uint64_t bytes);

// What ParseBytes reads back as exactly `bytes`, in the largest unit that
// divides them: "512MiB", "80GB", "1234567".
std::string FormatBytesExact(uint64_t bytes);

// "15s", "2m", "1h30m", "500ms"; not negative, not infinite; what
// absl::FormatDuration prints is read back.
// INVALID_ARGUMENT names the text and what is allowed.
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BYTES_H_
