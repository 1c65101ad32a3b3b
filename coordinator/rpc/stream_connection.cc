#include "coordinator/rpc/stream_connection.h"

#include <thread>
#include <utility>

namespace lockstep {
namespace {

// A worker that reads nothing is cut off.
constexpr size_t kMostQueued = 10'000;

}  // namespace

StreamConnection::StreamConnection(grpc::ServerContext& context, Stream& stream)
    : context_(context), stream_(stream) {}

absl::Status StreamConnection::Serve(
    const v1::CoordinatorMessage& first,
    const std::function<void(const v1::WorkerMessage&)>& take) {
  std::thread writer([this, &first] { WriteQueue(first); });
  v1::WorkerMessage message;
  while (stream_.Read(&message)) take(message);
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  writer.join();
  absl::MutexLock lock(&mutex_);
  serving_ = false;
  return status_;
}

void StreamConnection::WriteQueue(const v1::CoordinatorMessage& first) {
  bool written = stream_.Write(first);
  std::deque<v1::CoordinatorMessage> batch;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const auto wanted = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return closed_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&wanted));
      if (closed_) return;
      batch.swap(queue_);
    }
    for (const v1::CoordinatorMessage& message : batch) {
      if (written) written = stream_.Write(message);
    }
    batch.clear();
  }
}

void StreamConnection::Send(const v1::CoordinatorMessage& message) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  queue_.push_back(message);
  if (queue_.size() > kMostQueued) {
    End(absl::ResourceExhaustedError("the worker reads no messages"));
  }
}

void StreamConnection::Close(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (!closed_) End(status);
}

void StreamConnection::End(const absl::Status& status) {
  closed_ = true;
  status_ = status;
  // Wakes the reader, and a writer that the worker's silence holds up.
  if (serving_) context_.TryCancel();
}

}  // namespace lockstep
