// Turns what a job says about its layout into a concrete layout for the devices
// it gets: pure. Until there is a planner, `parallel: auto` is `dp` over all
// devices.
#ifndef LOCKSTEP_COORDINATOR_PLAN_LAYOUT_RESOLVER_H_
#define LOCKSTEP_COORDINATOR_PLAN_LAYOUT_RESOLVER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lockstep/v1/job.pb.h"
#include "lockstep/v1/plan.pb.h"

namespace lockstep {

// Whether a job must take all the devices it is given (`submit`) or may leave
// some alone (`run`, whose cluster is the job's own).
enum class DeviceUse { kExact, kAtMost };

// Devices that the job asks for: `resources.devices`, else the product of the
// degrees given by hand, else 1.
int64_t RequestedDevices(const v1::JobSpec& spec);

// Ids that the model's embedding is counted with: model.vocabulary, else the
// tokenizer's, else an estimate (a tokenizer that only the worker can read).
int64_t EstimatedVocabulary(const v1::JobSpec& spec);

// The layout of `spec` on `shape.devices` devices. A rank may use the smaller
// of `resources.memory_per_device` and `shape.memory_per_device_bytes`; 0 and
// absent are no limit. `spec` must be valid with its defaults filled in.
// `micro_batch`, unless given, is a rank's whole share (with pp: share / (2
// pp)), halved until it fits.
//   INVALID_ARGUMENT: degrees, devices and global batch contradict each other.
//   FAILED_PRECONDITION: more devices are needed than there are, or even the
//     smallest micro-batch doesn't fit; the message has the numbers.
absl::StatusOr<v1::ResolvedLayout> ResolveLayout(const v1::JobSpec& spec,
                                                 const v1::ClusterShape& shape,
                                                 DeviceUse use);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_PLAN_LAYOUT_RESOLVER_H_
