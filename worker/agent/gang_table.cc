#include "worker/agent/gang_table.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids.h"
#include "common/job_words.h"
#include "common/log.h"

namespace lockstep {
namespace {

// Ranks whose gang has failed have nothing to save.
constexpr absl::Duration kAbortGrace = absl::Seconds(2);
// How long a rank that has said why it ends may take to end.
constexpr absl::Duration kFailureGrace = absl::Seconds(5);
constexpr absl::Duration kMaxGrace = absl::Seconds(60);
// What an ended rank had said is read from its socket within this time.
constexpr absl::Duration kSessionDrainTime = absl::Seconds(2);
constexpr int kTokenCharacters = 32;

// Jobs' ids become folder names.
bool IsFolderName(const std::string& text) {
  return !text.empty() && text.size() <= 128 && text[0] != '.' &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyz"
             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == std::string::npos;
}

absl::Duration HangTimeout(const v1::JobSpec& spec) {
  if (!spec.has_restart() || !spec.restart().has_hang_timeout()) {
    return kDefaultHangTimeout;
  }
  const auto& timeout = spec.restart().hang_timeout();
  return absl::Seconds(timeout.seconds()) + absl::Nanoseconds(timeout.nanos());
}

}  // namespace

GangTable::GangTable(Options options) : options_(std::move(options)) {}

// ---- from the coordinator ----

void GangTable::Prepare(const v1::PrepareGang& prepare) {
  const GangKey key = GangKey::Of(prepare.gang());
  if (gangs_.contains(key)) {
    Answer(key, absl::OkStatus());  // said again after a reconnect
    return;
  }
  // An older attempt of the job that still runs here has been given up.
  for (auto& [other, gang] : gangs_) {
    if (other.job == key.job && other.generation < key.generation) {
      StopGangRanks(
          gang, absl::StrCat("generation ", key.generation, " takes its place"),
          absl::ZeroDuration(), nullptr);
    }
  }
  DropEnded();
  const absl::Status status = Reserve(prepare);
  if (!status.ok()) LOG(WARNING) << "gang " << key << " refused: " << status;
  Answer(key, status);
}

absl::Status GangTable::Reserve(const v1::PrepareGang& prepare) {
  const GangKey key = GangKey::Of(prepare.gang());
  if (shutting_down_) {
    return absl::UnavailableError(
        absl::StrCat("worker ", options_.worker, " is shutting down"));
  }
  if (!IsFolderName(key.job) || key.generation < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job id '", key.job, "' generation ", key.generation, " is malformed"));
  }
  if (prepare.ranks().empty()) {
    return absl::InvalidArgumentError("no ranks to prepare");
  }
  const auto newest = newest_generation_.find(key.job);
  if (newest != newest_generation_.end() && newest->second > key.generation) {
    return absl::AbortedError(absl::StrCat("generation ", key.generation,
                                           " is stale; the newest is ",
                                           newest->second));
  }
  std::set<std::string> free;
  for (const v1::DeviceInfo& device : options_.devices)
    free.insert(device.id());
  for (const auto& [other, gang] : gangs_) {
    for (const RankRecord& rank : gang.ranks) {
      free.erase(rank.assignment.device());
    }
  }
  GangRecord gang;
  gang.reserved_at = options_.clock->Uptime();
  for (const v1::RankAssignment& assignment : prepare.ranks()) {
    std::string device = assignment.device();
    if (device.empty() && !free.empty()) device = *free.begin();
    if (free.erase(device) == 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("rank ", assignment.rank(), ": device ",
                       device.empty() ? "of any kind" : device,
                       " is not free on worker ", options_.worker));
    }
    RankRecord& rank = gang.ranks.emplace_back();
    rank.assignment = Complete(assignment, device);
    rank.token = RandomBase32(kTokenCharacters);
  }
  gangs_.emplace(key, std::move(gang));
  newest_generation_[key.job] = key.generation;
  return absl::OkStatus();
}

v1::RankAssignment GangTable::Complete(const v1::RankAssignment& assignment,
                                       const std::string& device) const {
  v1::RankAssignment complete = assignment;
  complete.set_device(device);
  if (complete.threads() == 0) {
    // Other workers may share the host; the gang's ranks there are known.
    const int64_t sharing =
        std::max<int64_t>(static_cast<int64_t>(options_.devices.size()),
                          complete.host_ranks_size());
    complete.set_threads(options_.threads.value_or(
        std::max<int64_t>(1, options_.cores / std::max<int64_t>(1, sharing))));
  }
  complete.set_job_dir(
      absl::StrCat(options_.job_root, "/", assignment.gang().job()));
  complete.set_cache_dir(absl::StrCat(options_.job_root, "/cache"));
  complete.set_data_root(options_.data_root);
  complete.set_data_address(options_.data_address);
  complete.set_worker(options_.worker);
  return complete;
}

void GangTable::Answer(const GangKey& key, const absl::Status& status) {
  v1::WorkerMessage message;
  v1::GangPrepared& prepared = *message.mutable_gang_prepared();
  *prepared.mutable_gang() = key.ToProto();
  prepared.set_accepted(status.ok());
  prepared.set_reason(std::string(status.message()));
  options_.world->Send(std::move(message));
}

void GangTable::Commit(const v1::CommitGang& commit) {
  const GangKey key = GangKey::Of(commit.gang());
  const auto it = gangs_.find(key);
  if (it == gangs_.end()) {
    Answer(key, absl::NotFoundError(absl::StrCat(
                    "worker ", options_.worker, " holds no such reservation")));
    return;
  }
  GangRecord& gang = it->second;
  if (gang.state == GangRecord::State::kRunning) return;
  gang.state = GangRecord::State::kRunning;
  for (RankRecord& rank : gang.ranks) Start(rank);
  for (RankRecord& rank : gang.ranks) {
    if (rank.process == nullptr) {
      AbortPeers(gang, rank, "could not be started");
      break;
    }
  }
  DropEnded();
}

void GangTable::Start(RankRecord& rank) {
  const v1::RankAssignment& assignment = rank.assignment;
  const GangKey key = GangKey::Of(assignment.gang());
  rank.oom_kills_at_start = options_.world->OomKills();
  auto process = options_.world->StartRank(assignment, rank.token);
  v1::WorkerMessage message;
  if (!process.ok()) {
    LOG(ERROR) << "gang " << key << " rank " << assignment.rank() << ": "
               << process.status();
    v1::RankExited& exited = *message.mutable_rank_exited();
    *exited.mutable_gang() = assignment.gang();
    exited.set_rank(assignment.rank());
    exited.set_cause(absl::IsResourceExhausted(process.status())
                         ? v1::CAUSE_DISK_FULL
                         : v1::CAUSE_INTERNAL);
    exited.set_message(std::string(process.status().message()));
    options_.world->Send(std::move(message));
    rank.exited_at = options_.clock->Uptime();
    rank.reported = true;
    return;
  }
  rank.process = *std::move(process);
  rank.progress_age.emplace(options_.clock->Uptime(),
                            HangTimeout(assignment.spec()));
  LOG(INFO) << "gang " << key << " rank " << assignment.rank() << " started on "
            << assignment.device() << ", pid " << rank.process->pid()
            << ", threads " << assignment.threads();
  options_.metrics->Increment(metric_names::kWorkerRanksStarted, {});
  v1::RankStarted& started = *message.mutable_rank_started();
  *started.mutable_gang() = assignment.gang();
  started.set_rank(assignment.rank());
  started.set_pid(rank.process->pid());
  options_.world->Send(std::move(message));
}

void GangTable::Stop(const v1::StopGang& stop) {
  const auto it = gangs_.find(GangKey::Of(stop.gang()));
  if (it == gangs_.end()) return;
  const absl::Duration grace = absl::Seconds(stop.grace().seconds()) +
                               absl::Nanoseconds(stop.grace().nanos());
  LOG(INFO) << "gang " << it->first << " stops: " << stop.reason();
  StopGangRanks(it->second, stop.reason(),
                std::clamp(grace, absl::ZeroDuration(), kMaxGrace), nullptr);
  DropEnded();
}

void GangTable::CheckpointCommitted(const v1::CheckpointCommitted& committed) {
  const auto it = gangs_.find(GangKey::Of(committed.gang()));
  if (it == gangs_.end()) return;
  for (RankRecord& rank : it->second.ranks) {
    if (rank.control == nullptr) continue;
    v1::RankControl control;
    *control.mutable_checkpoint_committed() = committed;
    rank.control->Push(std::move(control));
  }
}

void GangTable::KillStale(const v1::Welcome& welcome) {
  for (const v1::GangId& id : welcome.stale()) {
    const auto it = gangs_.find(GangKey::Of(id));
    if (it == gangs_.end()) continue;
    LOG(WARNING) << "gang " << it->first << " is stale and is killed";
    StopGangRanks(it->second, "the coordinator no longer wants this generation",
                  absl::ZeroDuration(), nullptr);
  }
  DropEnded();
}

void GangTable::ShutDown(const std::string& reason, absl::Duration grace) {
  shutting_down_ = true;
  for (auto& [key, gang] : gangs_) {
    for (RankRecord& rank : gang.ranks) {
      if (rank.process != nullptr && rank.process->State() != 'Z' &&
          !rank.end.stop_reason.has_value()) {
        rank.end.shutdown = reason;
      }
    }
    StopGangRanks(gang, reason, grace, nullptr);
  }
  DropEnded();
}

// ---- from the ranks ----

std::optional<GangTable::Found> GangTable::Find(const std::string& token) {
  for (auto& [key, gang] : gangs_) {
    for (RankRecord& rank : gang.ranks) {
      if (rank.token == token) return Found{&gang, &rank};
    }
  }
  return std::nullopt;
}

absl::StatusOr<v1::RankAssignment> GangTable::Assignment(
    const std::string& token) const {
  for (const auto& [key, gang] : gangs_) {
    for (const RankRecord& rank : gang.ranks) {
      if (rank.token == token && rank.process != nullptr) {
        return rank.assignment;
      }
    }
  }
  return absl::PermissionDeniedError("no rank of this worker has this token");
}

absl::Status GangTable::OpenSession(const std::string& token,
                                    std::shared_ptr<ControlQueue> control) {
  const std::optional<Found> found = Find(token);
  if (!found.has_value() || found->rank->process == nullptr) {
    return absl::PermissionDeniedError("no rank of this worker has this token");
  }
  if (found->rank->control != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("rank ", found->rank->assignment.rank(),
                     " has opened its session before"));
  }
  found->rank->control = std::move(control);
  return absl::OkStatus();
}

void GangTable::OnRankMessage(const std::string& token,
                              const v1::RankMessage& message) {
  const std::optional<Found> found = Find(token);
  if (!found.has_value()) return;
  RankRecord& rank = *found->rank;
  rank.step = std::max(rank.step, message.step());
  rank.progress_age->Saw(options_.clock->Uptime(), rank.step);
  switch (message.message_case()) {
    case v1::RankMessage::kReport:
      Forward(rank, message.report());
      break;
    case v1::RankMessage::kProgress:
      rank.progress = message.progress();
      break;
    case v1::RankMessage::kFailure:
      rank.end.failure = message.failure();
      rank.end.failed_after_stop = rank.end.stop_reason.has_value();
      if (!rank.kill_at.has_value()) {
        rank.kill_at = options_.clock->Uptime() + kFailureGrace;
      }
      AbortPeers(*found->gang, rank,
                 absl::StrCat("failed: ", message.failure().message()));
      break;
    case v1::RankMessage::kFinished:
      rank.end.finished = message.finished();
      break;
    case v1::RankMessage::MESSAGE_NOT_SET:
      break;
  }
}

void GangTable::Forward(const RankRecord& rank, const v1::RankReport& report) {
  v1::WorkerMessage message;
  v1::RankReport& copy = *message.mutable_rank_report();
  copy = report;
  *copy.mutable_gang() = rank.assignment.gang();
  copy.set_rank(rank.assignment.rank());
  options_.world->Send(std::move(message));
}

void GangTable::CloseSession(const std::string& token) {
  const std::optional<Found> found = Find(token);
  if (!found.has_value()) return;
  found->rank->control = nullptr;
  ReportIfOver(*found->gang, *found->rank);
  DropEnded();
}

// ---- the end of ranks ----

void GangTable::StopGangRanks(GangRecord& gang, const std::string& reason,
                              absl::Duration grace, const RankRecord* except) {
  for (RankRecord& rank : gang.ranks) {
    if (&rank != except) StopRank(rank, reason, grace);
  }
  // A reservation has nothing to stop.
  if (gang.state == GangRecord::State::kReserved) gang.ranks.clear();
}

void GangTable::StopRank(RankRecord& rank, const std::string& reason,
                         absl::Duration grace) {
  if (rank.process == nullptr || rank.exited_at.has_value()) return;
  // A rank that has ended by itself must not look as if it was stopped.
  if (rank.process->State() == 'Z') return;
  if (!rank.end.stop_reason.has_value()) rank.end.stop_reason = reason;
  const absl::Duration kill_at = options_.clock->Uptime() + grace;
  rank.kill_at = std::min(rank.kill_at.value_or(kill_at), kill_at);
  if (grace > absl::ZeroDuration()) {
    rank.end.sent_term = true;
    rank.process->Signal(SIGTERM);
    rank.process->Signal(SIGCONT);  // a stopped process would not see SIGTERM
  } else {
    rank.end.sent_kill = true;
    rank.process->Signal(SIGKILL);
  }
}

void GangTable::AbortPeers(GangRecord& gang, const RankRecord& failed,
                           const std::string& what) {
  const std::string reason =
      absl::StrCat("rank ", failed.assignment.rank(), " ", what);
  for (RankRecord& rank : gang.ranks) {
    if (&rank == &failed || rank.process == nullptr ||
        rank.exited_at.has_value() || rank.end.stop_reason.has_value() ||
        rank.end.failure.has_value() || rank.process->State() == 'Z') {
      continue;
    }
    if (rank.control == nullptr) {
      StopRank(rank, reason, kAbortGrace);
      continue;
    }
    // By its channel, so that its log says why.
    rank.end.stop_reason = reason;
    rank.kill_at = options_.clock->Uptime() + kAbortGrace;
    v1::RankControl control;
    control.set_abort(reason);
    rank.control->Push(std::move(control));
  }
}

void GangTable::OnExit(const std::string& token, int wait_status,
                       const std::string& last_line) {
  const std::optional<Found> found = Find(token);
  if (!found.has_value()) return;
  RankRecord& rank = *found->rank;
  rank.exited_at = options_.clock->Uptime();
  rank.end.wait_status = wait_status;
  rank.end.last_line = last_line;
  rank.end.oom_killed = options_.world->OomKills() > rank.oom_kills_at_start;
  ReportIfOver(*found->gang, rank);
  DropEnded();
}

void GangTable::ReportIfOver(GangRecord& gang, RankRecord& rank) {
  if (rank.reported || !rank.exited_at.has_value()) return;
  const bool drained =
      rank.control == nullptr ||
      options_.clock->Uptime() - *rank.exited_at >= kSessionDrainTime;
  if (drained) Report(gang, rank);
}

void GangTable::Report(GangRecord& gang, RankRecord& rank) {
  const GangKey key = GangKey::Of(rank.assignment.gang());
  if (!rank.progress.phase().empty()) {
    rank.end.where =
        absl::StrCat("step ", rank.step, ", ", rank.progress.phase());
  }
  v1::WorkerMessage message;
  v1::RankExited& exited = *message.mutable_rank_exited();
  exited = JudgeRankEnd(rank.end);
  *exited.mutable_gang() = rank.assignment.gang();
  exited.set_rank(rank.assignment.rank());
  const bool good = exited.cause() == v1::CAUSE_UNSPECIFIED;
  const std::string cause = good ? "none" : CauseWord(exited.cause());
  LOG(INFO) << "gang " << key << " rank " << exited.rank() << " ended"
            << (good ? "" : ", cause " + cause)
            << (exited.secondary() ? " (secondary)" : "")
            << (good ? "" : ": " + exited.message());
  options_.metrics->Increment(metric_names::kWorkerRanksExited,
                              {{"cause", cause}});
  const std::string what = exited.message();
  options_.world->Send(std::move(message));
  rank.reported = true;
  if (!good) AbortPeers(gang, rank, absl::StrCat("ended: ", what));
}

void GangTable::DropEnded() {
  for (auto it = gangs_.begin(); it != gangs_.end();) {
    const GangRecord& gang = it->second;
    const bool ended =
        std::all_of(gang.ranks.begin(), gang.ranks.end(),
                    [](const RankRecord& rank) { return rank.reported; });
    if (!ended) {
      ++it;
      continue;
    }
    options_.metrics->RemoveSeries("job", it->first.job);
    it = gangs_.erase(it);
  }
}

// ---- what others ask ----

std::vector<v1::WorkerHello::RunningRank> GangTable::RunningRanks() const {
  std::vector<v1::WorkerHello::RunningRank> running;
  for (const auto& [key, gang] : gangs_) {
    for (const RankRecord& rank : gang.ranks) {
      if (rank.process == nullptr || rank.reported) continue;
      v1::WorkerHello::RunningRank& entry = running.emplace_back();
      *entry.mutable_gang() = key.ToProto();
      entry.set_rank(rank.assignment.rank());
      entry.set_device(rank.assignment.device());
    }
  }
  return running;
}

v1::Heartbeat GangTable::MakeHeartbeat() const {
  v1::Heartbeat heartbeat;
  for (const auto& [key, gang] : gangs_) {
    for (const RankRecord& rank : gang.ranks) {
      if (rank.process == nullptr || rank.exited_at.has_value()) continue;
      v1::Heartbeat::RankProgress& entry = *heartbeat.add_ranks();
      *entry.mutable_gang() = key.ToProto();
      entry.set_rank(rank.assignment.rank());
      entry.set_step(rank.step);
      // A rank that has said nothing yet has no progress.
      if (!rank.progress.phase().empty()) {
        *entry.mutable_progress() = rank.progress;
      }
    }
  }
  return heartbeat;
}

}  // namespace lockstep
