// StreamConnection: a WorkerConnection over a gRPC stream. Messages are queued
// and written by the connection's own thread, so that Send never blocks.
//
// Threads: all functions may be called from any thread, except that Serve is
// called once, by the stream's handler, which must outlive it.
#ifndef LOCKSTEP_COORDINATOR_RPC_STREAM_CONNECTION_H_
#define LOCKSTEP_COORDINATOR_RPC_STREAM_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/membership/worker_registry.h"
#include "lockstep/v1/worker_service.grpc.pb.h"

namespace lockstep {

class StreamConnection : public WorkerConnection {
 public:
  using Stream =
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;

  // Both must live until Serve returns.
  StreamConnection(grpc::ServerContext& context, Stream& stream);

  // Writes `first`, then what is sent, and hands on what is read, until either
  // side ends the stream. OK if the worker ended it.
  absl::Status Serve(const v1::CoordinatorMessage& first,
                     const std::function<void(const v1::WorkerMessage&)>& take);

  void Send(const v1::CoordinatorMessage& message) override;
  void Close(const absl::Status& status) override;

 private:
  void WriteQueue(const v1::CoordinatorMessage& first);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::ServerContext& context_;
  Stream& stream_;
  absl::Mutex mutex_;
  std::deque<v1::CoordinatorMessage> queue_ ABSL_GUARDED_BY(mutex_);
  // While Serve runs, and so while the stream's context may be used.
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;
  // No more is queued, and the writer ends.
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_RPC_STREAM_CONNECTION_H_
