#include "coordinator/launch/gang_supervisor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "google/protobuf/util/time_util.h"

namespace lockstep {
namespace {

google::protobuf::Duration ToProto(absl::Duration duration) {
  return google::protobuf::util::TimeUtil::MillisecondsToDuration(
      absl::ToInt64Milliseconds(duration));
}

}  // namespace

GangSupervisor::GangSupervisor(Deps deps, Options options)
    : deps_(std::move(deps)),
      options_(std::move(options)),
      last_tick_(Uptime()) {}

void GangSupervisor::Recover(const std::vector<RendezvousRecord>& rendezvous) {
  for (const JobRecord& job : deps_.jobs.Running()) {
    std::optional<AttemptRecord> attempt = deps_.jobs.NewestAttempt(job.id);
    if (!attempt.has_value()) continue;
    Gang gang;
    gang.id.set_job(job.id);
    gang.id.set_generation(attempt->generation);
    const bool running = job.state == v1::JOB_STATE_RUNNING;
    gang.phase = running ? GangPhase::kRunning : GangPhase::kStarting;
    gang.phase_began = Uptime();
    if (!job.cancel_reason.empty()) gang.cancel_reason = job.cancel_reason;
    if (attempt->cause != v1::CAUSE_UNSPECIFIED) {
      gang.verdict.NoteFailure({attempt->cause, attempt->first_rank,
                                attempt->worker, attempt->message});
    }
    for (size_t i = 0; i < attempt->ranks.size(); ++i) {
      const RankRecord& record = attempt->ranks[i];
      GangRank rank;
      rank.life = {record.worker, record.incarnation};
      rank.device = record.device;
      rank.started = running;
      rank.gone = record.exited;
      if (record.ended_badly) {
        v1::RankExited exit;
        exit.set_rank(static_cast<int64_t>(i));
        exit.set_cause(v1::CAUSE_EXIT);
        exit.set_secondary(true);
        exit.set_message("ended before the coordinator was started again");
        gang.verdict.NoteExit(exit, record.worker);
      }
      gang.ranks.push_back(std::move(rank));
      if (record.exited) continue;
      deps_.workers.Expect(gang.ranks.back().life, options_.adoption_window);
      deps_.workers.Hold(gang.ranks.back().life, record.device, gang.id,
                         static_cast<int64_t>(i));
    }
    for (const CheckpointRecord& checkpoint : deps_.jobs.Checkpoints(job.id)) {
      if (checkpoint.generation == attempt->generation) {
        gang.committed_step = std::max(gang.committed_step, checkpoint.step);
      }
    }
    deps_.rendezvous.Open(gang.id, attempt->secret);
    gang.attempt = *std::move(attempt);
    LOG(INFO) << GangText(gang.id) << ": waits for its workers to come back";
    gangs_.emplace(job.id, std::move(gang));
  }
  for (const RendezvousRecord& record : rendezvous) {
    deps_.rendezvous.Restore(record);
  }
  // What a crash kept from being cleaned.
  for (const JobRecord& job : deps_.jobs.List()) {
    if (IsEnded(job.state)) CleanFolder(job.id);
  }
  deps_.post_blocking([&jobs = deps_.jobs] { jobs.EndDeletions(); });
  for (auto& [job, gang] : gangs_) {
    if (gang.cancel_reason.has_value()) {
      Stop(gang, *gang.cancel_reason, options_.cancel_grace);
    } else if (gang.verdict.failed()) {
      Stop(gang, gang.verdict.failure().message, options_.failure_grace);
    }
  }
}

absl::StatusOr<v1::Welcome> GangSupervisor::OnHello(
    const v1::WorkerHello& hello,
    std::shared_ptr<WorkerConnection> connection) {
  ASSIGN_OR_RETURN(const WorkerRegistry::Admitted admitted,
                   deps_.workers.Admit(hello, std::move(connection)));
  if (admitted.old_connection != nullptr) {
    admitted.old_connection->Close(
        absl::AbortedError("the worker has opened a new stream"));
  }
  if (admitted.replaced.has_value()) {
    OnWorkerLost(*admitted.replaced, "it was started again");
  }
  const WorkerLife life{hello.name(), hello.incarnation()};
  LOG(INFO) << "worker " << life.name << " at " << hello.address()
            << " is here with " << hello.devices_size() << " devices";
  v1::Welcome welcome;
  welcome.set_coordinator_version(options_.version);
  *welcome.mutable_heartbeat_interval() = ToProto(options_.heartbeat_interval);
  AdoptOrRefuse(hello, life, welcome);
  queue_changed_ = true;
  return welcome;
}

void GangSupervisor::AdoptOrRefuse(const v1::WorkerHello& hello,
                                   const WorkerLife& life,
                                   v1::Welcome& welcome) {
  std::set<std::pair<std::string, int64_t>> listed;
  std::set<std::pair<std::string, int64_t>> stale;
  for (const v1::WorkerHello::RunningRank& running : hello.running()) {
    const auto gang = gangs_.find(running.gang().job());
    const bool known =
        gang != gangs_.end() && gang->second.Committed() &&
        gang->second.id.generation() == running.gang().generation() &&
        gang->second.RunsOn(life);
    if (known) {
      listed.emplace(running.gang().job(), running.rank());
      continue;
    }
    if (stale.emplace(running.gang().job(), running.gang().generation())
            .second) {
      LOG(WARNING) << GangText(running.gang()) << ": is stale on worker "
                   << life.name << " and is ended there";
      *welcome.add_stale() = running.gang();
    }
  }
  // Reservations of a broken stream count no more; neither do devices of gangs
  // that have ended meanwhile.
  for (const v1::GangId& holder : deps_.workers.HoldersOn(life)) {
    if (gangs_.count(holder.job()) == 0) deps_.workers.ReleaseGang(holder);
  }
  for (auto& [job, gang] : gangs_) {
    if (!gang.RunsOn(life)) continue;
    if (gang.reservation.has_value()) gang.reservation->OnWorkerGone(life.name);
    if (!gang.Committed()) continue;
    if (gang.phase == GangPhase::kStarting) {
      // The commit may have been lost with the old stream.
      v1::CoordinatorMessage commit;
      *commit.mutable_commit_gang()->mutable_gang() = gang.id;
      SendTo(life, commit);
    }
    for (size_t i = 0; i < gang.ranks.size(); ++i) {
      GangRank& rank = gang.ranks[i];
      if (rank.life != life || rank.gone) continue;
      const auto key = std::pair(job, static_cast<int64_t>(i));
      if (listed.count(key) > 0) {
        rank.missing_since.reset();
        rank.started = true;
      } else if (rank.started) {
        rank.missing_since = Uptime();
      }
    }
    if (gang.phase == GangPhase::kStopping) {
      const bool cancelled = gang.cancel_reason.has_value();
      SendStop(gang, life, cancelled ? *gang.cancel_reason : "the gang failed",
               cancelled ? options_.cancel_grace : options_.failure_grace);
    }
    deps_.jobs.AddEvent(job, "adopted",
                        absl::StrCat("worker ", life.name, " is back"));
  }
}

void GangSupervisor::OnMessage(
    const WorkerLife& life, const std::shared_ptr<WorkerConnection>& connection,
    const v1::WorkerMessage& message) {
  // A stream that was replaced or given up says nothing any more.
  if (!deps_.workers.Heard(life.name, connection.get())) return;
  const int64_t sequence = message.sequence();
  if (sequence == 0 || deps_.workers.IsNew(life.name, sequence)) {
    switch (message.message_case()) {
      case v1::WorkerMessage::kHeartbeat:
        OnHeartbeat(message.heartbeat());
        break;
      case v1::WorkerMessage::kGangPrepared: {
        const v1::GangPrepared& prepared = message.gang_prepared();
        const auto gang = gangs_.find(prepared.gang().job());
        if (gang == gangs_.end() || !gang->second.reservation.has_value() ||
            gang->second.id.generation() != prepared.gang().generation()) {
          break;
        }
        gang->second.reservation->OnAnswer(life.name, prepared.accepted(),
                                           prepared.reason());
        OnReservation(gang->second);
        break;
      }
      case v1::WorkerMessage::kRankStarted:
        OnRankStarted(message.rank_started());
        break;
      case v1::WorkerMessage::kRankExited:
        OnRankExited(life, message.rank_exited());
        break;
      case v1::WorkerMessage::kRankReport:
        OnRankReport(sequence, message.rank_report());
        break;
      case v1::WorkerMessage::kHello:
      case v1::WorkerMessage::MESSAGE_NOT_SET:
        LOG(WARNING) << "worker " << life.name
                     << " sent a message that makes no sense here";
        break;
    }
  }
  if (sequence == 0) return;
  // What the message led to is stored before the worker forgets it.
  deps_.jobs.store().WhenStored(
      [weak = std::weak_ptr<WorkerConnection>(connection), sequence] {
        const auto alive = weak.lock();
        if (alive == nullptr) return;
        v1::CoordinatorMessage acknowledgement;
        acknowledgement.set_acknowledged_sequence(sequence);
        alive->Send(acknowledgement);
      });
}

void GangSupervisor::OnDisconnect(const WorkerLife& life,
                                  const WorkerConnection* connection) {
  if (!deps_.workers.Disconnect(life.name, connection)) return;
  if (shutting_down_) return;
  LOG(WARNING) << "worker " << life.name << ": its stream broke";
  for (auto& [job, gang] : gangs_) {
    if (!gang.RunsOn(life)) continue;
    if (gang.reservation.has_value()) gang.reservation->OnWorkerGone(life.name);
    if (!gang.Committed()) continue;
    deps_.jobs.AddEvent(
        job, "disconnected",
        absl::StrCat("worker ", life.name,
                     ": its stream broke; its ranks may train on"));
  }
  queue_changed_ = true;
}

void GangSupervisor::OnWorkerLost(const WorkerLife& life,
                                  const std::string& how) {
  LOG(ERROR) << "worker " << life.name << " is lost: " << how;
  deps_.metrics.Increment(metric_names::kWorkersLost, {});
  queue_changed_ = true;
  for (auto& [job, gang] : gangs_) {
    if (!gang.RunsOn(life)) continue;
    if (gang.reservation.has_value()) gang.reservation->OnWorkerGone(life.name);
    if (!gang.Committed()) continue;
    const std::optional<int64_t> rank = gang.LowestRankOn(life);
    if (!rank.has_value()) continue;
    for (GangRank& entry : gang.ranks) {
      if (entry.life == life) entry.gone = true;
    }
    if (gang.verdict.NoteLostWorker(life.name, *rank, how)) {
      NoteFirstCause(gang);
    }
    Stop(gang, absl::StrCat("worker ", life.name, " is lost"),
         options_.failure_grace);
  }
}

void GangSupervisor::AfterStored(std::function<void()> closure) {
  // Nothing of ours but the closure: the store may outlive us by a moment, but
  // then the loop drops what is posted.
  deps_.jobs.store().WhenStored(
      [post = deps_.post, closure = std::move(closure)]() mutable {
        post(std::move(closure));
      });
}

void GangSupervisor::SendTo(const WorkerLife& life,
                            const v1::CoordinatorMessage& message) {
  // A worker that is away gets what still matters when it is back.
  deps_.workers.Send(life, message);
}

void GangSupervisor::SendToAll(const Gang& gang,
                               const v1::CoordinatorMessage& message) {
  for (const WorkerLife& life : gang.Lives()) SendTo(life, message);
}

Gang* GangSupervisor::FindCommitted(const v1::GangId& id) {
  const auto found = gangs_.find(id.job());
  if (found == gangs_.end() || !found->second.Committed() ||
      found->second.id.generation() != id.generation()) {
    return nullptr;
  }
  return &found->second;
}

void GangSupervisor::MakeUpFor(absl::Duration pause) {
  LOG(WARNING) << "nothing was done for " << absl::FormatDuration(pause)
               << ": this process was paused; all deadlines move";
  deps_.workers.Extend(pause);
  for (auto& [job, gang] : gangs_) {
    gang.phase_began += pause;
    if (gang.reservation.has_value()) gang.reservation->Extend(pause);
    for (GangRank& rank : gang.ranks) {
      if (rank.missing_since.has_value()) *rank.missing_since += pause;
    }
  }
}

void GangSupervisor::Tick() {
  if (shutting_down_) return;
  const absl::Duration now = Uptime();
  const absl::Duration gap = now - std::exchange(last_tick_, now);
  if (gap > options_.longest_tick_gap) MakeUpFor(gap);
  for (const WorkerLife& life : deps_.workers.Expire()) {
    OnWorkerLost(life, "nothing was heard of it");
  }
  std::vector<std::string> jobs;
  for (const auto& [job, gang] : gangs_) jobs.push_back(job);
  for (const std::string& job : jobs) {
    Gang& gang = gangs_.at(job);
    if (gang.reservation.has_value()) {
      gang.reservation->OnTime(now);
      OnReservation(gang);
      continue;
    }
    if (!gang.Committed()) continue;
    CheckDeadlines(gang);
    EndIfGone(gang);
  }
  for (auto& [job, held] : held_back_) {
    if (!held.until.has_value() || *held.until > now) continue;
    held.until.reset();
    queue_changed_ = true;
  }
  if (std::exchange(queue_changed_, false)) RunQueue();
}

}  // namespace lockstep
