// A slow, plain transformer in fp64: the oracle for the engine's. Written from
// the papers, token by token, sharing nothing with worker/nn but the names of
// the parameters.
#ifndef LOCKSTEP_TESTS_TESTING_REFERENCE_MODEL_H_
#define LOCKSTEP_TESTS_TESTING_REFERENCE_MODEL_H_

#include <map>
#include <string>
#include <vector>

#include "common/spec/model_spec.h"
#include "worker/data/micro_batch.h"

namespace lockstep {

// Values by logical name, row-major.
using ReferenceParameters = std::map<std::string, std::vector<double>>;

// Mean loss over the valid targets of `batch`, without dropout.
double ReferenceLoss(const ModelSpec& spec,
                     const ReferenceParameters& parameters,
                     const MicroBatch& batch);

// d loss / d parameter by central differences with step `h`.
double ReferenceGradient(const ModelSpec& spec, ReferenceParameters parameters,
                         const MicroBatch& batch, const std::string& name,
                         size_t element, double h);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_REFERENCE_MODEL_H_
