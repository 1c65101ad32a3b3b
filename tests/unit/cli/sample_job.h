// A valid job file that tests change a line of.
#ifndef LOCKSTEP_TESTS_UNIT_CLI_SAMPLE_JOB_H_
#define LOCKSTEP_TESTS_UNIT_CLI_SAMPLE_JOB_H_

#include "common/spec/spec_reader.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep::testing {

inline constexpr char kSampleJob[] = R"(name: kjv
model:
  family: llama
  layers: 4
  width: 256
  heads: 4
data:
  train: {path: kjv.txt}
train:
  global_batch: 32
  sequence_length: 128
  steps: 400
  optimizer: {learning_rate: 1e-3}
)";

inline v1::JobSpec SampleJob() {
  v1::JobSpec spec;
  // A failure shows in every test that uses the job.
  (void)ReadSpecText(kSampleJob, "job.yaml", spec);
  return spec;
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_CLI_SAMPLE_JOB_H_
