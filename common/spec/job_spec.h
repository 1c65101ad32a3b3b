// Checks a job as it comes from outside and fills in its defaults. Inside, a
// spec is trusted.
#ifndef LOCKSTEP_COMMON_SPEC_JOB_SPEC_H_
#define LOCKSTEP_COMMON_SPEC_JOB_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dtype.h"
#include "common/spec/model_spec.h"
#include "common/spec/training_spec.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep {

// What is wrong with `spec`, if anything, without reading any file.
//   INVALID_ARGUMENT: a value out of range, a missing key, keys that contradict
//     each other. The message names the key's path ("train.global_batch"), what
//     it is and what it must be.
//   UNIMPLEMENTED: a value whose feature doesn't exist yet ("not built yet").
absl::Status ValidateJobSpec(const v1::JobSpec& spec);

// Fills in every default that doesn't depend on the data, the tokenizer or the
// cluster (design: section 2). Idempotent. `spec` must be valid.
void FillDefaults(v1::JobSpec& spec);

// Things worth telling the user on stderr ("restart: accepted, but ...").
std::vector<std::string> SpecWarnings(const v1::JobSpec& spec);

// The typed forms. `spec` must be valid and have its defaults filled in.
// `vocabulary`: ids of the tokenizer, used where the model names none;
// `classes`: labels of the training data (classification; else 0).
// INVALID_ARGUMENT if the model's vocabulary is smaller than the tokenizer's.
absl::StatusOr<ModelSpec> MakeModelSpec(const v1::JobSpec& spec,
                                        int64_t vocabulary, int64_t classes);
TrainingSpec MakeTrainingSpec(const v1::JobSpec& spec);

// The dtype in which `precision` computes.
DType ComputeDType(v1::Precision precision);

// An OK status if a job of `spec` may start from a checkpoint of `source`:
// model, data, tokenizer, task, sequence_length, seed and optimizer name must
// match; FAILED_PRECONDITION names the first difference.
absl::Status CheckResumable(const v1::JobSpec& spec, const v1::JobSpec& source);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPEC_JOB_SPEC_H_
