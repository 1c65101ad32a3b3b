// The parts of ValidateJobSpec: one function per section of the job file, and
// the small checks they are made of. For the files of this folder only.
#ifndef LOCKSTEP_COMMON_SPEC_SPEC_CHECKS_H_
#define LOCKSTEP_COMMON_SPEC_SPEC_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep::spec_internal {

// Largest values that are taken. They are far beyond any machine, and small
// enough that products of a few of them stay within 64 bits.
inline constexpr int64_t kMostLayers = 10'000;
inline constexpr int64_t kMostWidth = 1'000'000;
inline constexpr int64_t kMostFeedForwardWidth = 10'000'000;
inline constexpr int64_t kMostIds = 100'000'000;
inline constexpr int64_t kMostPositions = 100'000'000;
inline constexpr int64_t kMostGlobalBatch = 10'000'000;
inline constexpr int64_t kMostSteps = 1'000'000'000;
inline constexpr int64_t kMostDevices = 1'000'000;
// Bound of activation elements of a whole global batch, over all layers.
inline constexpr double kMostActivations = 1e16;

// INVALID_ARGUMENT "KEY is VALUE, want LEAST to MOST". `key` is the key's path.
absl::Status CheckRange(absl::string_view key, int64_t value, int64_t least,
                        int64_t most);
// The same for a required key whose absence reads as 0.
absl::Status CheckRequired(absl::string_view key, int64_t value, int64_t most);
// Finite and above 0.
absl::Status CheckPositive(absl::string_view key, double value);
// Finite and at least 0.
absl::Status CheckNotNegative(absl::string_view key, double value);
// In [0, 1).
absl::Status CheckBelowOne(absl::string_view key, double value);
// INVALID_ARGUMENT "KEY is a key of OWNERS, not of CHOICE" if `present`.
absl::Status CheckNotOf(bool present, absl::string_view key,
                        absl::string_view owners, absl::string_view choice);

// Format of a source: as given, else by the extension that all its paths have;
// unspecified if that doesn't tell.
v1::DataFormat FormatOf(const v1::DataSource& source);

// Sections of the job file. INVALID_ARGUMENT names the key.
absl::Status CheckModel(const v1::JobSpec& spec);
absl::Status CheckData(const v1::JobSpec& spec);
// Rules of one data source alone; `key` is its path, "data.train" say.
absl::Status CheckSource(absl::string_view key, const v1::DataSource& source,
                         v1::Task task);
absl::Status CheckTrain(const v1::TrainSpec& train);
absl::Status CheckPlacement(const v1::JobSpec& spec);
// The layout takes no more devices than the job asks for. After CheckBuilt: of
// a layout that isn't built yet, that is what must be said.
absl::Status CheckWorldSize(const v1::JobSpec& spec);
// Keeps later counts of memory and work within 64 bits. After the others.
absl::Status CheckActivations(const v1::JobSpec& spec);
absl::Status CheckAction(const v1::JobSpec& spec);

// UNIMPLEMENTED "KEY: VALUE is not built yet" for a value whose feature does
// not exist yet. `spec` is otherwise valid.
absl::Status CheckBuilt(const v1::JobSpec& spec);

}  // namespace lockstep::spec_internal

#endif  // LOCKSTEP_COMMON_SPEC_SPEC_CHECKS_H_
