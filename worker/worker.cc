#include "worker/worker.h"

#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/host/memory_cgroup.h"
#include "common/log.h"
#include "common/metrics/metrics_server.h"
#include "common/metrics/registry.h"
#include "common/serial_loop.h"
#include "common/status_macros.h"
#include "common/version.h"
#include "worker/agent/coordinator_channels.h"
#include "worker/agent/coordinator_session.h"
#include "worker/agent/gang_table.h"
#include "worker/agent/rank_launcher.h"
#include "worker/agent/rank_server.h"
#include "worker/agent/runtime_dir.h"
#include "worker/agent/store_proxy.h"

namespace lockstep {
namespace {

// How often overdue ranks and hangs are looked for.
constexpr absl::Duration kTickInterval = absl::Milliseconds(200);
// Between SIGTERM and SIGKILL when the worker shuts down.
constexpr absl::Duration kShutDownGrace = absl::Seconds(5);
// For all ranks to be gone after that, and for the coordinator to know.
constexpr absl::Duration kShutDownWait = absl::Seconds(12);
constexpr absl::Duration kFlushTime = absl::Seconds(5);

class LocalWorker : public Worker, private GangTable::World {
 public:
  explicit LocalWorker(Options options)
      : options_(std::move(options)),
        channels_(options_.coordinators),
        store_(channels_, *options_.clock),
        table_(TableOptions()) {}

  ~LocalWorker() override {
    // The ranks first, while their ends can still be posted; then all that
    // brings in work; the loop last, for it runs what was posted.
    metrics_server_.reset();
    if (loop_ != nullptr) {
      loop_->Run(
          [this] { table_.ShutDown("the worker ends", absl::ZeroDuration()); });
      AwaitEmpty(kShutDownWait);
      loop_->Run([this] { table_.Abandon(); });
    }
    session_.reset();
    rank_server_.reset();
    loop_.reset();
  }

  absl::Status Open() {
    for (const std::string& folder : {options_.job_root, options_.data_root}) {
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error) {
        return absl::UnavailableError(absl::StrCat(
            "can't make the folder ", folder, ": ", error.message()));
      }
    }
    ASSIGN_OR_RETURN(runtime_dir_, RuntimeDir::Make(options_.runtime_parent));
    launcher_ = {options_.rank_program, runtime_dir_->path() + "/rank.sock",
                 options_.inventory.cores};
    loop_ =
        SerialLoop::Start(*options_.clock, kTickInterval, [this] { Tick(); });
    RankServer::Options server;
    server.socket_path = launcher_.socket_path;
    server.loop = loop_.get();
    server.table = &table_;
    server.store = &store_;
    ASSIGN_OR_RETURN(rank_server_, RankServer::Start(server));
    RETURN_IF_ERROR(ServeMetrics());
    OpenSession();
    opened_.Notify();
    return absl::OkStatus();
  }

  absl::Status ShutDown(const std::string& reason) override {
    LOG(INFO) << "shutting down: " << reason;
    loop_->Run([&] {
      table_.ShutDown(
          absl::StrCat("worker ", options_.name, " shut down: ", reason),
          kShutDownGrace);
    });
    const bool empty = AwaitEmpty(kShutDownWait);
    if (session_->Connected().ok()) {
      if (const absl::Status flushed = session_->Flush(kFlushTime);
          !flushed.ok()) {
        LOG(WARNING) << flushed.message();
      }
    }
    if (empty) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat("ranks that can't be killed are left after ",
                     absl::FormatDuration(kShutDownWait)));
  }

  std::optional<Address> metrics_address() const override {
    if (metrics_server_ == nullptr) return std::nullopt;
    return metrics_server_->address();
  }

 private:
  GangTable::Options TableOptions() {
    GangTable::Options table;
    table.worker = options_.name;
    table.devices = options_.inventory.devices;
    table.cores = options_.inventory.cores;
    table.threads = options_.threads;
    table.job_root = options_.job_root;
    table.data_root = options_.data_root;
    table.data_address = options_.data_address;
    table.clock = options_.clock;
    table.world = this;
    table.metrics = &metrics_;
    return table;
  }

  absl::Status ServeMetrics() {
    metrics_.Set(metric_names::kWorkerInfo,
                 {{"worker", options_.name},
                  {"version", std::string(Version())},
                  {"device_kind", options_.inventory.devices[0].kind()}},
                 1);
    metrics_.Set(metric_names::kWorkerConnected, {}, 0);
    metrics_.Increment(metric_names::kWorkerReconnects, {}, 0);
    if (!options_.metrics.has_value()) return absl::OkStatus();
    MetricsServer::Options server;
    server.address = *options_.metrics;
    server.registry = &metrics_;
    server.collect = [this] { loop_->Run([this] { table_.UpdateMetrics(); }); };
    server.ready = [this]() -> absl::Status {
      if (!opened_.HasBeenNotified()) {
        return absl::UnavailableError("the worker is starting");
      }
      return session_->Connected();
    };
    ASSIGN_OR_RETURN(metrics_server_, MetricsServer::Start(std::move(server)));
    return absl::OkStatus();
  }

  void OpenSession() {
    CoordinatorSession::Options session;
    session.channels = &channels_;
    session.clock = options_.clock;
    session.metrics = &metrics_;
    session.seed = std::hash<std::string>()(options_.incarnation);
    session.hello = [this] { return MakeHello(); };
    session.heartbeat = [this] {
      return loop_->Run([this] { return table_.MakeHeartbeat(); });
    };
    session.on_message = [this](const v1::CoordinatorMessage& message) {
      // What it leads to may use session_, which isn't set yet while the
      // session is being made.
      opened_.WaitForNotification();
      loop_->Post([this, message] { Dispatch(message); });
    };
    session_ = CoordinatorSession::Start(std::move(session));
  }

  v1::WorkerHello MakeHello() {
    v1::WorkerHello hello;
    hello.set_name(options_.name);
    hello.set_incarnation(options_.incarnation);
    hello.set_version(std::string(Version()));
    hello.set_address(options_.address);
    for (const v1::DeviceInfo& device : options_.inventory.devices) {
      *hello.add_devices() = device;
    }
    hello.set_cpu_level(options_.inventory.cpu_level);
    hello.set_cores(options_.inventory.cores);
    for (v1::WorkerHello::RunningRank& rank :
         loop_->Run([this] { return table_.RunningRanks(); })) {
      *hello.add_running() = std::move(rank);
    }
    return hello;
  }

  // On the loop.
  void Dispatch(const v1::CoordinatorMessage& message) {
    switch (message.message_case()) {
      case v1::CoordinatorMessage::kWelcome:
        table_.KillStale(message.welcome());
        break;
      case v1::CoordinatorMessage::kPrepareGang:
        table_.Prepare(message.prepare_gang());
        break;
      case v1::CoordinatorMessage::kCommitGang:
        table_.Commit(message.commit_gang());
        break;
      case v1::CoordinatorMessage::kStopGang:
        table_.Stop(message.stop_gang());
        break;
      case v1::CoordinatorMessage::kCheckpointCommitted:
        table_.CheckpointCommitted(message.checkpoint_committed());
        break;
      case v1::CoordinatorMessage::kAcknowledgedSequence:  // the session's
      case v1::CoordinatorMessage::MESSAGE_NOT_SET:  // of a newer coordinator
        break;
    }
  }

  // On the loop, after each batch of its closures.
  void Tick() {
    table_.Tick();
    absl::MutexLock lock(&empty_mutex_);
    empty_ = table_.empty();
  }

  // Waits until no rank is left.
  bool AwaitEmpty(absl::Duration timeout) {
    absl::MutexLock lock(&empty_mutex_);
    return options_.clock->WaitFor(empty_mutex_, absl::Condition(&empty_),
                                   timeout);
  }

  // GangTable::World, on the loop.
  absl::StatusOr<std::unique_ptr<RankHandle>> StartRank(
      const v1::RankAssignment& assignment, const std::string& token) override {
    return LaunchRank(
        launcher_, assignment, token,
        [this, token](int status, std::string last_line) {
          loop_->Post([this, token, status, last_line = std::move(last_line)] {
            table_.OnExit(token, status, last_line);
          });
        });
  }
  void Send(v1::WorkerMessage message) override {
    session_->Send(std::move(message));
  }
  int64_t OomKills() override { return cgroup_.OomKills(); }

  const Options options_;
  const MemoryCgroup cgroup_ = MemoryCgroup::Find("");
  MetricsRegistry metrics_;
  CoordinatorChannels channels_;
  StoreProxy store_;
  GangTable table_;  // on the loop only
  absl::Mutex empty_mutex_;
  bool empty_ ABSL_GUARDED_BY(empty_mutex_) = true;  // whether table_ is
  std::unique_ptr<RuntimeDir> runtime_dir_;
  RankLauncherOptions launcher_;
  std::unique_ptr<SerialLoop> loop_;
  std::unique_ptr<RankServer> rank_server_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<CoordinatorSession> session_;
  absl::Notification opened_;  // session_ may be used by all threads
};

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(Options options) {
  auto worker = std::make_unique<LocalWorker>(std::move(options));
  RETURN_IF_ERROR(worker->Open());
  return worker;
}

}  // namespace lockstep
