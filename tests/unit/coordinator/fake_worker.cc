#include "tests/unit/coordinator/fake_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log.h"

namespace lockstep {
namespace testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

}  // namespace

struct FakeWorker::Session {
  grpc::ClientContext context;
  std::unique_ptr<v1::WorkerService::Stub> stub;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>>
      stream;
  std::thread reader;
};

FakeWorker::FakeWorker(std::string name, std::string incarnation, int devices)
    : name_(std::move(name)),
      incarnation_(std::move(incarnation)),
      devices_(devices) {}

FakeWorker::~FakeWorker() { Disconnect(); }

std::optional<v1::Welcome> FakeWorker::Connect(
    const std::string& address,
    const std::vector<v1::WorkerHello::RunningRank>& running) {
  Disconnect();
  {
    absl::MutexLock lock(&mutex_);
    ended_ = false;
    inbox_.clear();
  }
  session_ = std::make_unique<Session>();
  session_->stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  session_->stream = session_->stub->Session(&session_->context);
  session_->reader = std::thread([this, stream = session_->stream.get()] {
    v1::CoordinatorMessage message;
    while (stream->Read(&message)) {
      absl::MutexLock lock(&mutex_);
      if (message.message_case() ==
          v1::CoordinatorMessage::kAcknowledgedSequence) {
        acknowledged_ =
            std::max(acknowledged_, message.acknowledged_sequence());
      } else {
        inbox_.push_back(message);
      }
    }
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  });
  v1::WorkerMessage message;
  v1::WorkerHello& hello = *message.mutable_hello();
  hello.set_name(name_);
  hello.set_incarnation(incarnation_);
  hello.set_address("127.0.0.1:1");
  hello.set_cpu_level(v1::CPU_LEVEL_X86_64_V3);
  for (int i = 0; i < devices_; ++i) {
    v1::DeviceInfo& device = *hello.add_devices();
    device.set_id(absl::StrCat("cpu:", i));
    device.set_kind("cpu");
    device.set_memory_bytes(1 << 30);
  }
  for (const v1::WorkerHello::RunningRank& rank : running) {
    *hello.add_running() = rank;
  }
  Send(std::move(message));
  const auto welcome = Await(v1::CoordinatorMessage::kWelcome);
  if (!welcome.has_value()) return std::nullopt;
  return welcome->welcome();
}

void FakeWorker::Disconnect() {
  if (session_ == nullptr) return;
  session_->context.TryCancel();
  session_->reader.join();
  session_.reset();
}

void FakeWorker::Send(v1::WorkerMessage message) {
  CHECK(session_ != nullptr) << "not connected";
  session_->stream->Write(message);
}

int64_t FakeWorker::SendKept(v1::WorkerMessage message) {
  Resend(std::move(message), ++last_sequence_);
  return last_sequence_;
}

void FakeWorker::Resend(v1::WorkerMessage message, int64_t sequence) {
  message.set_sequence(sequence);
  Send(std::move(message));
}

void FakeWorker::Accept(const v1::GangId& gang) {
  v1::WorkerMessage message;
  *message.mutable_gang_prepared()->mutable_gang() = gang;
  message.mutable_gang_prepared()->set_accepted(true);
  Send(std::move(message));
}

void FakeWorker::Refuse(const v1::GangId& gang, const std::string& reason) {
  v1::WorkerMessage message;
  *message.mutable_gang_prepared()->mutable_gang() = gang;
  message.mutable_gang_prepared()->set_reason(reason);
  Send(std::move(message));
}

void FakeWorker::Started(const v1::GangId& gang, int64_t rank) {
  v1::WorkerMessage message;
  *message.mutable_rank_started()->mutable_gang() = gang;
  message.mutable_rank_started()->set_rank(rank);
  message.mutable_rank_started()->set_pid(1234);
  SendKept(std::move(message));
}

int64_t FakeWorker::Exited(const v1::GangId& gang, int64_t rank,
                           v1::Cause cause, const std::string& text,
                           bool secondary) {
  v1::WorkerMessage message;
  v1::RankExited& exited = *message.mutable_rank_exited();
  *exited.mutable_gang() = gang;
  exited.set_rank(rank);
  exited.set_cause(cause);
  exited.set_message(text);
  exited.set_exit_code(cause == v1::CAUSE_UNSPECIFIED ? 0 : 1);
  exited.set_secondary(secondary);
  return SendKept(std::move(message));
}

int64_t FakeWorker::Report(const v1::GangId& gang, int64_t rank,
                           v1::RankReport report) {
  v1::WorkerMessage message;
  *report.mutable_gang() = gang;
  report.set_rank(rank);
  *message.mutable_rank_report() = std::move(report);
  return SendKept(std::move(message));
}

int64_t FakeWorker::Step(const v1::GangId& gang, int64_t step, double loss) {
  v1::RankReport report;
  report.mutable_step()->set_step(step);
  report.mutable_step()->set_loss(loss);
  report.mutable_step()->set_tokens(128);
  report.mutable_step()->set_seconds(0.5);
  return Report(gang, 0, std::move(report));
}

int64_t FakeWorker::Checkpoint(const v1::GangId& gang, int64_t step) {
  v1::RankReport report;
  v1::CheckpointPrepared& prepared = *report.mutable_checkpoint();
  prepared.set_step(step);
  prepared.set_path(absl::StrCat("/anywhere/", gang.job(), "/step-", step, ".g",
                                 gang.generation()));
  prepared.set_manifest_hash(absl::StrCat("hash-", step));
  prepared.set_bytes(1000);
  return Report(gang, 0, std::move(report));
}

v1::PrepareGang FakeWorker::StartGang() {
  const auto prepare = Await(v1::CoordinatorMessage::kPrepareGang);
  CHECK(prepare.has_value()) << name_ << " was asked to prepare nothing";
  Accept(prepare->prepare_gang().gang());
  const auto commit = Await(v1::CoordinatorMessage::kCommitGang);
  CHECK(commit.has_value()) << name_ << " was asked to commit nothing";
  for (const v1::RankAssignment& rank : prepare->prepare_gang().ranks()) {
    Started(rank.gang(), rank.rank());
  }
  return prepare->prepare_gang();
}

std::optional<v1::CoordinatorMessage> FakeWorker::Await(
    v1::CoordinatorMessage::MessageCase field) {
  absl::MutexLock lock(&mutex_);
  const auto find = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return std::find_if(inbox_.begin(), inbox_.end(),
                        [field](const v1::CoordinatorMessage& message) {
                          return message.message_case() == field;
                        });
  };
  const auto done = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return ended_ || find() != inbox_.end();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&done), kPatience);
  const auto found = find();
  if (found == inbox_.end()) return std::nullopt;
  v1::CoordinatorMessage message = std::move(*found);
  inbox_.erase(found);
  return message;
}

bool FakeWorker::Has(v1::CoordinatorMessage::MessageCase field) {
  absl::MutexLock lock(&mutex_);
  return std::any_of(inbox_.begin(), inbox_.end(),
                     [field](const v1::CoordinatorMessage& message) {
                       return message.message_case() == field;
                     });
}

bool FakeWorker::AwaitAcknowledged(int64_t sequence) {
  absl::MutexLock lock(&mutex_);
  const auto done = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return acknowledged_ >= sequence;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&done), kPatience);
}

bool FakeWorker::AwaitEnd() {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&ended_), kPatience);
}

v1::WorkerHello::RunningRank RunningRank(const v1::GangId& gang, int64_t rank) {
  v1::WorkerHello::RunningRank running;
  *running.mutable_gang() = gang;
  running.set_rank(rank);
  running.set_device("cpu:0");
  return running;
}

}  // namespace testing
}  // namespace lockstep
