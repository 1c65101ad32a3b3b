// FakeCoordinator: serves WorkerService to the worker under test, and lets the
// test say and see everything. Waits at most 30 s of real time.
#ifndef LOCKSTEP_TESTS_UNIT_AGENT_FAKE_COORDINATOR_H_
#define LOCKSTEP_TESTS_UNIT_AGENT_FAKE_COORDINATOR_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/address.h"
#include "lockstep/v1/worker_service.grpc.pb.h"

namespace lockstep {
namespace testing {

class FakeCoordinator : public v1::WorkerService::Service {
 public:
  FakeCoordinator();
  ~FakeCoordinator() override;

  // Starts to serve; on the same port when it was served before.
  void Serve();
  // Breaks all streams and stops serving.
  void Stop();

  Address address() const { return {"127.0.0.1", port_}; }
  // Whether messages are acknowledged as they come.
  void set_acknowledge(bool acknowledge);
  // Named in each later welcome.
  void set_stale(const v1::GangId& gang);

  // To the newest session.
  void Send(const v1::CoordinatorMessage& message);
  void Acknowledge(int64_t sequence);

  // Everything received so far, hello and heartbeats included, and how many
  // sessions there have been.
  std::vector<v1::WorkerMessage> Received() const;
  int sessions() const;

  // The first message received that `wanted` takes; absent if none comes.
  std::optional<v1::WorkerMessage> Await(
      const std::function<bool(const v1::WorkerMessage&)>& wanted);
  std::optional<v1::RankExited> AwaitExit(int64_t rank);
  std::optional<v1::RankStarted> AwaitStart(int64_t rank);
  // Waits until `count` sessions have been opened.
  bool AwaitSessions(int count);

  // Waits until `count` StoreGets have come.
  bool AwaitGets(int count);
  void Set(const std::string& key, const std::string& value);

  // ---- What a coordinator says, in short.
  // Prepares and commits ranks 0 to `ranks` - 1 of a job that `what` names for
  // fake_rank, on devices cpu:0 ...; waits until all have started.
  bool StartGang(const std::string& what, int ranks);
  static v1::GangId Gang();

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>*
          stream) override;
  grpc::Status StoreSet(grpc::ServerContext* context,
                        const v1::StoreSetRequest* request,
                        v1::StoreSetResponse* response) override;
  grpc::Status StoreGet(grpc::ServerContext* context,
                        const v1::StoreGetRequest* request,
                        v1::StoreGetResponse* response) override;

 private:
  using Stream =
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable absl::Mutex mutex_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool acknowledge_ ABSL_GUARDED_BY(mutex_) = true;
  std::optional<v1::GangId> stale_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::WorkerMessage> received_ ABSL_GUARDED_BY(mutex_);
  int sessions_ ABSL_GUARDED_BY(mutex_) = 0;
  int gets_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> store_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_AGENT_FAKE_COORDINATOR_H_
