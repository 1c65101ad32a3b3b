// A whole coordinator in this process, with a clock that stands still, and what
// a client does with it.
#ifndef LOCKSTEP_TESTS_UNIT_COORDINATOR_COORDINATOR_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_COORDINATOR_COORDINATOR_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "gtest/gtest.h"
#include "lockstep/v1/job_service.grpc.pb.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/coordinator/fake_worker.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace testing {

class CoordinatorFixture : public ::testing::Test {
 protected:
  CoordinatorFixture();

  // Starts it on the same store and, later, the same port.
  void Start();
  void Stop();
  std::string address() const { return coordinator_->address().ToString(); }

  // Answers of JobService; `context` gets a deadline of 30 s.
  grpc::Status TrySubmit(const v1::SubmitRequest& request,
                         v1::SubmitResponse* response);
  // Id of a job of `devices` devices.
  std::string Submit(int64_t devices, const std::string& name = "tiny");
  v1::JobInfo Job(const std::string& id);
  v1::JobReport Report(const std::string& id);
  grpc::Status Cancel(const std::string& id, v1::JobInfo* info = nullptr);
  // Watches until an update that `wanted` takes; all updates up to it. Ends
  // with the stream. Fails the test after 30 s.
  std::vector<v1::JobUpdate> WatchUntil(
      const std::string& id, int64_t after_sequence,
      const std::function<bool(const v1::JobUpdate&)>& wanted);
  // Watches until the job is in `state`, and returns that update.
  v1::JobInfo AwaitState(const std::string& id, JobState state);
  // Watches until the job's reason has `phrase`.
  std::string AwaitReason(const std::string& id, const std::string& phrase);
  std::vector<v1::CheckpointInfo> Checkpoints(const std::string& id);
  std::vector<std::string> EventTypes(const std::string& id);
  // Waits until the worker's state is `state`.
  bool AwaitWorkerState(const std::string& worker, const std::string& state);
  // Waits until `count` devices are free.
  bool AwaitFreeDevices(int64_t count);

  const TempDir dir_;
  FakeClock clock_;
  Coordinator::Options options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  int next_request_ = 0;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COORDINATOR_COORDINATOR_FIXTURE_H_
