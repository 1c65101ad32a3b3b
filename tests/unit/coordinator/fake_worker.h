// FakeWorker: a worker that speaks the session's protocol and runs no ranks;
// the test says what "happens". Waits at most 30 s of real time for a message.
#ifndef LOCKSTEP_TESTS_UNIT_COORDINATOR_FAKE_WORKER_H_
#define LOCKSTEP_TESTS_UNIT_COORDINATOR_FAKE_WORKER_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lockstep/v1/worker_service.grpc.pb.h"

namespace lockstep {
namespace testing {

class FakeWorker {
 public:
  FakeWorker(std::string name, std::string incarnation, int devices);
  ~FakeWorker();

  // Opens a session with `running` ranks; returns the welcome, or nothing if
  // the session was refused.
  std::optional<v1::Welcome> Connect(
      const std::string& address,
      const std::vector<v1::WorkerHello::RunningRank>& running = {});
  // Breaks the stream.
  void Disconnect();

  void Send(v1::WorkerMessage message);
  // With the next sequence number, which is returned.
  int64_t SendKept(v1::WorkerMessage message);
  // The same message again.
  void Resend(v1::WorkerMessage message, int64_t sequence);

  // ---- What a worker says, in short.
  void Accept(const v1::GangId& gang);
  void Refuse(const v1::GangId& gang, const std::string& reason);
  void Started(const v1::GangId& gang, int64_t rank);
  int64_t Exited(const v1::GangId& gang, int64_t rank,
                 v1::Cause cause = v1::CAUSE_UNSPECIFIED,
                 const std::string& message = "", bool secondary = false);
  int64_t Report(const v1::GangId& gang, int64_t rank, v1::RankReport report);
  int64_t Step(const v1::GangId& gang, int64_t step, double loss = 1.0);
  int64_t Checkpoint(const v1::GangId& gang, int64_t step);
  // Waits for PrepareGang, accepts, waits for CommitGang and says that all of
  // its ranks have started. Returns what was prepared.
  v1::PrepareGang StartGang();

  // The first message not yet taken that has `field`, a number of
  // CoordinatorMessage's oneof. Nothing after 30 s, or once the stream ended.
  std::optional<v1::CoordinatorMessage> Await(
      v1::CoordinatorMessage::MessageCase field);
  // Whether such a message has come.
  bool Has(v1::CoordinatorMessage::MessageCase field);
  // Waits until all up to `sequence` are acknowledged.
  bool AwaitAcknowledged(int64_t sequence);
  // Waits until the coordinator has ended the stream.
  bool AwaitEnd();

  const std::string& name() const { return name_; }
  const std::string& incarnation() const { return incarnation_; }

 private:
  struct Session;

  const std::string name_;
  const std::string incarnation_;
  const int devices_;
  int64_t last_sequence_ = 0;
  std::unique_ptr<Session> session_;
  absl::Mutex mutex_;
  std::deque<v1::CoordinatorMessage> inbox_ ABSL_GUARDED_BY(mutex_);
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

v1::WorkerHello::RunningRank RunningRank(const v1::GangId& gang, int64_t rank);

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COORDINATOR_FAKE_WORKER_H_
