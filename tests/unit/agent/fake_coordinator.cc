#include "tests/unit/agent/fake_coordinator.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"

namespace lockstep {
namespace testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kHeartbeat = absl::Milliseconds(50);

}  // namespace

FakeCoordinator::FakeCoordinator() { Serve(); }

FakeCoordinator::~FakeCoordinator() { Stop(); }

void FakeCoordinator::Serve() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = false;
  }
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address().ToString(),
                           grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr) << "can't listen on " << address().ToString();
}

void FakeCoordinator::Stop() {
  if (server_ == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void FakeCoordinator::set_acknowledge(bool acknowledge) {
  absl::MutexLock lock(&mutex_);
  acknowledge_ = acknowledge;
}

void FakeCoordinator::set_stale(const v1::GangId& gang) {
  absl::MutexLock lock(&mutex_);
  stale_ = gang;
}

void FakeCoordinator::Send(const v1::CoordinatorMessage& message) {
  absl::MutexLock lock(&mutex_);
  const auto open = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stream_ != nullptr;
  };
  CHECK(mutex_.AwaitWithTimeout(absl::Condition(&open), kPatience))
      << "no worker has a session";
  stream_->Write(message);
}

void FakeCoordinator::Acknowledge(int64_t sequence) {
  v1::CoordinatorMessage message;
  message.set_acknowledged_sequence(sequence);
  Send(message);
}

std::vector<v1::WorkerMessage> FakeCoordinator::Received() const {
  absl::MutexLock lock(&mutex_);
  return received_;
}

int FakeCoordinator::sessions() const {
  absl::MutexLock lock(&mutex_);
  return sessions_;
}

std::optional<v1::WorkerMessage> FakeCoordinator::Await(
    const std::function<bool(const v1::WorkerMessage&)>& wanted) {
  absl::MutexLock lock(&mutex_);
  std::optional<v1::WorkerMessage> found;
  size_t looked_at = 0;
  const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    // Evaluated again after it held: `wanted` sees each message once.
    for (; !found.has_value() && looked_at < received_.size(); ++looked_at) {
      if (wanted(received_[looked_at])) found = received_[looked_at];
    }
    return found.has_value();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience);
  return found;
}

std::optional<v1::RankExited> FakeCoordinator::AwaitExit(int64_t rank) {
  const auto message = Await([rank](const v1::WorkerMessage& candidate) {
    return candidate.has_rank_exited() &&
           candidate.rank_exited().rank() == rank;
  });
  if (!message.has_value()) return std::nullopt;
  return message->rank_exited();
}

std::optional<v1::RankStarted> FakeCoordinator::AwaitStart(int64_t rank) {
  const auto message = Await([rank](const v1::WorkerMessage& candidate) {
    return candidate.has_rank_started() &&
           candidate.rank_started().rank() == rank;
  });
  if (!message.has_value()) return std::nullopt;
  return message->rank_started();
}

bool FakeCoordinator::AwaitSessions(int count) {
  absl::MutexLock lock(&mutex_);
  const auto enough = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return sessions_ >= count;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&enough), kPatience);
}

bool FakeCoordinator::AwaitGets(int count) {
  absl::MutexLock lock(&mutex_);
  const auto enough = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return gets_ >= count;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&enough), kPatience);
}

void FakeCoordinator::Set(const std::string& key, const std::string& value) {
  absl::MutexLock lock(&mutex_);
  store_[key] = value;
}

v1::GangId FakeCoordinator::Gang() {
  v1::GangId gang;
  gang.set_job("test-1a2b");
  gang.set_generation(1);
  return gang;
}

bool FakeCoordinator::StartGang(const std::string& what, int ranks) {
  v1::CoordinatorMessage prepare;
  *prepare.mutable_prepare_gang()->mutable_gang() = Gang();
  for (int rank = 0; rank < ranks; ++rank) {
    v1::RankAssignment& assignment =
        *prepare.mutable_prepare_gang()->add_ranks();
    *assignment.mutable_gang() = Gang();
    assignment.set_rank(rank);
    assignment.set_world_size(ranks);
    assignment.set_device(absl::StrCat("cpu:", rank));
    assignment.mutable_spec()->set_name(what);
  }
  Send(prepare);
  const auto prepared = Await([](const v1::WorkerMessage& message) {
    return message.has_gang_prepared();
  });
  if (!prepared.has_value() || !prepared->gang_prepared().accepted()) {
    return false;
  }
  v1::CoordinatorMessage commit;
  *commit.mutable_commit_gang()->mutable_gang() = Gang();
  Send(commit);
  for (int rank = 0; rank < ranks; ++rank) {
    if (!AwaitStart(rank).has_value()) return false;
  }
  return true;
}

grpc::Status FakeCoordinator::Session(grpc::ServerContext* context,
                                      Stream* stream) {
  v1::WorkerMessage message;
  if (!stream->Read(&message)) return grpc::Status::OK;
  {
    absl::MutexLock lock(&mutex_);
    received_.push_back(message);
    v1::CoordinatorMessage welcome;
    welcome.mutable_welcome()->set_coordinator_version("fake");
    welcome.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(kHeartbeat)));
    if (stale_.has_value()) *welcome.mutable_welcome()->add_stale() = *stale_;
    stream->Write(welcome);
    stream_ = stream;
    ++sessions_;
  }
  while (stream->Read(&message)) {
    absl::MutexLock lock(&mutex_);
    received_.push_back(message);
    if (!acknowledge_ || message.sequence() == 0) continue;
    v1::CoordinatorMessage acknowledgement;
    acknowledgement.set_acknowledged_sequence(message.sequence());
    stream->Write(acknowledgement);
  }
  absl::MutexLock lock(&mutex_);
  if (stream_ == stream) stream_ = nullptr;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::StoreSet(grpc::ServerContext* context,
                                       const v1::StoreSetRequest* request,
                                       v1::StoreSetResponse* response) {
  absl::MutexLock lock(&mutex_);
  store_[request->key()] = request->value();
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::StoreGet(grpc::ServerContext* context,
                                       const v1::StoreGetRequest* request,
                                       v1::StoreGetResponse* response) {
  absl::MutexLock lock(&mutex_);
  ++gets_;
  for (const std::string& key : request->keys()) {
    const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return stopping_ || store_.contains(key);
    };
    const absl::Time deadline = absl::FromChrono(context->deadline());
    if (!mutex_.AwaitWithDeadline(absl::Condition(&there), deadline)) {
      return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED,
                          absl::StrCat("key ", key, " was not set"));
    }
    if (stopping_) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "");
    response->add_values(store_[key]);
  }
  return grpc::Status::OK;
}

}  // namespace testing
}  // namespace lockstep
