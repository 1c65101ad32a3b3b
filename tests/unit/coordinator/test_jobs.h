// Small valid jobs for the coordinator's tests.
#ifndef LOCKSTEP_TESTS_UNIT_COORDINATOR_TEST_JOBS_H_
#define LOCKSTEP_TESTS_UNIT_COORDINATOR_TEST_JOBS_H_

#include <string>

#include "common/spec/job_spec.h"
#include "coordinator/schedule/cluster_view.h"
#include "coordinator/store/job_store.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep {
namespace testing {

inline constexpr uint64_t kMiB = 1 << 20;

// As a user writes it: no default is filled in.
inline v1::JobSpec TestSpec(const std::string& name = "tiny") {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_model()->set_family(v1::MODEL_FAMILY_LLAMA);
  spec.mutable_model()->set_layers(2);
  spec.mutable_model()->set_width(32);
  spec.mutable_model()->set_heads(2);
  spec.mutable_data()->mutable_train()->add_path("train.txt");
  spec.mutable_train()->set_global_batch(8);
  spec.mutable_train()->set_sequence_length(16);
  spec.mutable_train()->set_steps(10);
  spec.mutable_train()->mutable_optimizer()->set_learning_rate(1e-3);
  return spec;
}

inline v1::JobSpec FilledSpec(const std::string& name = "tiny") {
  v1::JobSpec spec = TestSpec(name);
  FillDefaults(spec);
  return spec;
}

// A pending job that asks for `devices`.
inline JobRecord TestJob(const std::string& id, int64_t devices = 1) {
  JobRecord job;
  job.id = id;
  job.request_id = "request-" + id;
  job.spec = FilledSpec();
  job.spec.mutable_resources()->mutable_devices()->set_min(devices);
  job.spec.mutable_resources()->mutable_devices()->set_max(devices);
  job.devices = devices;
  return job;
}

// A worker with `devices` free CPU devices on a host of its own.
inline WorkerView TestWorker(const std::string& name, int devices,
                             uint64_t memory_bytes = 1024 * kMiB) {
  WorkerView worker;
  worker.name = name;
  worker.incarnation = name + "-1";
  worker.host = "host-" + name;
  worker.cpu_level = v1::CPU_LEVEL_X86_64_V3;
  for (int i = 0; i < devices; ++i) {
    worker.devices.push_back({"cpu:" + std::to_string(i), memory_bytes, ""});
  }
  return worker;
}

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COORDINATOR_TEST_JOBS_H_
