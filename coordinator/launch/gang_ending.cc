// How gangs end: ranks exit, workers are lost, users cancel.
#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "coordinator/launch/gang_supervisor.h"
#include "google/protobuf/util/time_util.h"

namespace lockstep {
namespace {

// "rank 1 on worker w1: out_of_memory: ...".
std::string FailureText(const AttemptVerdict::Failure& failure) {
  std::string text;
  if (failure.rank.has_value()) absl::StrAppend(&text, "rank ", *failure.rank);
  if (!failure.worker.empty()) {
    absl::StrAppend(&text, text.empty() ? "worker " : " on worker ",
                    failure.worker);
  }
  if (!text.empty()) absl::StrAppend(&text, ": ");
  return absl::StrCat(text, CauseWord(failure.cause), ": ", failure.message);
}

void FillFailure(const AttemptVerdict::Failure& failure,
                 AttemptRecord& attempt) {
  attempt.cause = failure.cause;
  attempt.first_rank = failure.rank;
  attempt.worker = failure.worker;
  attempt.message = failure.message;
}

}  // namespace

void GangSupervisor::OnRankExited(const WorkerLife& life,
                                  const v1::RankExited& exited) {
  Gang* gang = FindCommitted(exited.gang());
  if (gang == nullptr || exited.rank() < 0 ||
      exited.rank() >= static_cast<int64_t>(gang->ranks.size()) ||
      gang->ranks[static_cast<size_t>(exited.rank())].life != life) {
    // Of a gang that was given up: its device is free now.
    deps_.workers.Release(exited.gang(), exited.rank());
    queue_changed_ = true;
    return;
  }
  GangRank& rank = gang->ranks[static_cast<size_t>(exited.rank())];
  if (rank.gone) return;
  rank.gone = true;
  RankRecord& record = gang->attempt.ranks[static_cast<size_t>(exited.rank())];
  record.exited = true;
  record.ended_badly = !IsCleanExit(exited);
  const bool is_first = gang->verdict.NoteExit(exited, life.name);
  if (is_first && !gang->cancel_reason.has_value()) {
    // The exit and its cause in one change: after a crash between two, the rank
    // would look as if it had ended well.
    NoteFirstCause(*gang);
  } else {
    LogIfError(deps_.jobs.RecordRankExit(gang->attempt, exited.rank()),
               gang->id);
  }
  if (gang->verdict.failed()) {
    Stop(*gang, absl::StrCat("rank ", exited.rank(), " ended"),
         options_.failure_grace);
  }
}

void GangSupervisor::NoteFirstCause(Gang& gang) {
  if (gang.cancel_reason.has_value()) return;
  const AttemptVerdict::Failure failure = gang.verdict.failure();
  LOG(ERROR) << GangText(gang.id) << ": " << FailureText(failure);
  FillFailure(failure, gang.attempt);
  LogIfError(deps_.jobs.RecordFailure(gang.attempt), gang.id);
}

void GangSupervisor::Stop(Gang& gang, const std::string& reason,
                          absl::Duration grace) {
  if (gang.phase == GangPhase::kStopping) return;
  gang.phase = GangPhase::kStopping;
  gang.phase_began = Uptime();
  deps_.rendezvous.Close(gang.id);
  for (const WorkerLife& life : gang.Lives()) {
    if (gang.LowestRankOn(life).has_value()) {
      SendStop(gang, life, reason, grace);
    }
  }
}

void GangSupervisor::SendStop(const Gang& gang, const WorkerLife& life,
                              const std::string& reason, absl::Duration grace) {
  v1::CoordinatorMessage message;
  v1::StopGang& stop = *message.mutable_stop_gang();
  *stop.mutable_gang() = gang.id;
  stop.set_reason(reason);
  *stop.mutable_grace() =
      google::protobuf::util::TimeUtil::MillisecondsToDuration(
          absl::ToInt64Milliseconds(grace));
  SendTo(life, message);
}

absl::Status GangSupervisor::Cancel(const std::string& job,
                                    const std::string& reason) {
  const auto record = deps_.jobs.Get(job);
  if (!record.ok()) return record.status();
  if (IsEnded(record->state)) return absl::OkStatus();
  const std::string text =
      reason.empty() ? "cancelled" : absl::StrCat("cancelled ", reason);
  if (record->state == v1::JOB_STATE_PENDING) {
    DropReservation(job, text);
    held_back_.erase(job);
    queue_changed_ = true;
    return deps_.jobs.EndPending(job, v1::JOB_STATE_CANCELLED,
                                 v1::CAUSE_UNSPECIFIED, text);
  }
  const auto gang = gangs_.find(job);
  if (gang == gangs_.end()) {
    return absl::InternalError(absl::StrCat(
        "job ", job, " is ", JobStateWord(record->state), " without a gang"));
  }
  if (gang->second.cancel_reason.has_value()) return absl::OkStatus();
  // Failing already: it ends by itself.
  if (gang->second.verdict.failed()) return absl::OkStatus();
  gang->second.cancel_reason = text;
  LogIfError(deps_.jobs.RequestCancel(job, text), gang->second.id);
  Stop(gang->second, text, options_.cancel_grace);
  return absl::OkStatus();
}

void GangSupervisor::CheckDeadlines(Gang& gang) {
  const absl::Duration now = Uptime();
  if (gang.phase == GangPhase::kStarting &&
      now >= gang.phase_began + options_.start_timeout) {
    for (size_t i = 0; i < gang.ranks.size(); ++i) {
      if (gang.ranks[i].started) continue;
      gang.verdict.NoteFailure(
          {v1::CAUSE_INTERNAL, static_cast<int64_t>(i), gang.ranks[i].life.name,
           absl::StrCat("not started within ",
                        absl::FormatDuration(options_.start_timeout))});
      break;
    }
  }
  for (size_t i = 0; i < gang.ranks.size(); ++i) {
    GangRank& rank = gang.ranks[i];
    if (rank.gone) continue;
    if (rank.missing_since.has_value() &&
        now >= *rank.missing_since + options_.missing_rank_grace) {
      rank.gone = true;
      gang.verdict.NoteFailure(
          {v1::CAUSE_INTERNAL, static_cast<int64_t>(i), rank.life.name,
           "its worker runs it no more and has not said how it ended"});
    }
    // In a gang that fails, a worker without connection is the likely reason.
    if (gang.phase != GangPhase::kStopping) continue;
    const auto away = deps_.workers.DisconnectedFor(rank.life);
    const absl::Duration failing_for = now - gang.phase_began;
    if (away.has_value() &&
        std::min(*away, failing_for) >= options_.failing_worker_grace) {
      rank.gone = true;
      if (!gang.cancel_reason.has_value() &&
          gang.verdict.NoteLostWorker(rank.life.name, static_cast<int64_t>(i),
                                      "its stream broke")) {
        NoteFirstCause(gang);
      }
    }
  }
  if (gang.phase != GangPhase::kStopping) {
    if (!gang.verdict.failed()) return;
    NoteFirstCause(gang);
    Stop(gang, gang.verdict.failure().message, options_.failure_grace);
    return;
  }
  const absl::Duration grace = gang.cancel_reason.has_value()
                                   ? options_.cancel_grace
                                   : options_.failure_grace;
  if (now < gang.phase_began + grace + options_.drain_timeout) return;
  for (size_t i = 0; i < gang.ranks.size(); ++i) {
    if (gang.ranks[i].gone) continue;
    LOG(ERROR) << GangText(gang.id) << ": rank " << i << " on worker "
               << gang.ranks[i].life.name << " doesn't end; its device stays "
               << "taken until it does";
    gang.ranks[i].gone = true;
    gang.ranks[i].device.clear();
  }
}

bool GangSupervisor::EndIfGone(Gang& gang) {
  if (!gang.AllGone()) return false;
  End(gang);
  return true;
}

bool GangSupervisor::HasFinalCheckpoint(const Gang& gang) const {
  const auto job = deps_.jobs.Get(gang.id.job());
  // An action commits nothing; that its ranks ended well is all there is.
  if (!job.ok() || job->spec.has_action()) return true;
  const auto history = deps_.jobs.History(gang.id.job());
  if (history.ok()) {
    const HistorySummary summary = (*history)->summary();
    if (summary.last_step.has_value() &&
        summary.generation == gang.id.generation()) {
      return gang.committed_step >= summary.last_step->step();
    }
  }
  // No step of it is known: a power cut took them, or a resumed job had nothing
  // left to train.
  if (gang.committed_step > 0) return true;
  const v1::RunFacts& facts = gang.attempt.facts;
  return facts.steps() > 0 && facts.start_step() >= facts.steps();
}

void GangSupervisor::End(Gang& gang) {
  const v1::GangId id = gang.id;
  if (!gang.cancel_reason.has_value() && !gang.verdict.failed() &&
      !HasFinalCheckpoint(gang)) {
    gang.verdict.NoteFailure(
        {v1::CAUSE_INTERNAL, 0, gang.ranks.front().life.name,
         "ended without a committed checkpoint of its last step"});
  }
  AttemptRecord attempt = std::move(gang.attempt);
  attempt.ended = deps_.clock.Now();
  JobState state = v1::JOB_STATE_FAILED;
  std::string reason;
  if (gang.cancel_reason.has_value()) {
    state = v1::JOB_STATE_CANCELLED;
    attempt.outcome = v1::OUTCOME_CANCELLED;
    attempt.cause = v1::CAUSE_UNSPECIFIED;
    reason = *gang.cancel_reason;
    attempt.message = reason;
  } else if (gang.verdict.failed()) {
    const AttemptVerdict::Failure failure = gang.verdict.failure();
    FillFailure(failure, attempt);
    attempt.outcome = failure.cause == v1::CAUSE_LOST_WORKER
                          ? v1::OUTCOME_LOST
                          : v1::OUTCOME_FAILED;
    reason = FailureText(failure);
  } else {
    state = v1::JOB_STATE_SUCCEEDED;
    attempt.outcome = v1::OUTCOME_SUCCEEDED;
  }
  // A gang whose ranks all ended before the last one was said to have started.
  const auto job = deps_.jobs.Get(id.job());
  if (job.ok() && job->state == v1::JOB_STATE_STARTING &&
      state == v1::JOB_STATE_SUCCEEDED) {
    LogIfError(deps_.jobs.MarkRunning(id.job(), ""), id);
  }
  LogIfError(deps_.jobs.EndAttempt(attempt, state, reason), id);
  deps_.metrics.Increment(metric_names::kAttemptsEnded,
                          {{"outcome", OutcomeWord(attempt.outcome)},
                           {"cause", CauseWord(attempt.cause)}});
  LOG(INFO) << GangText(id) << ": " << JobStateWord(state)
            << (reason.empty() ? "" : ": ") << reason;
  deps_.rendezvous.Close(id);
  for (size_t i = 0; i < gang.ranks.size(); ++i) {
    if (!gang.ranks[i].device.empty()) {
      deps_.workers.Release(id, static_cast<int64_t>(i));
    }
  }
  gangs_.erase(id.job());
  queue_changed_ = true;
  CleanFolder(id.job());
}

void GangSupervisor::CleanFolder(const std::string& job) {
  std::set<std::string> kept;
  for (const CheckpointRecord& checkpoint : deps_.jobs.Checkpoints(job)) {
    kept.insert(std::filesystem::path(checkpoint.path).filename().string());
  }
  const std::string folder = deps_.jobs.JobFolder(job);
  deps_.post_blocking([folder, kept] {
    // What was written but never counted.
    std::vector<std::filesystem::path> dropped;
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    while (!error && entries != std::filesystem::directory_iterator()) {
      const std::string name = entries->path().filename().string();
      const bool checkpoint =
          absl::StartsWith(name, "step-") || absl::StartsWith(name, ".step-");
      if (checkpoint && kept.count(name) == 0) {
        dropped.push_back(entries->path());
      }
      entries.increment(error);
    }
    for (const std::filesystem::path& path : dropped) {
      std::filesystem::remove_all(path, error);
    }
  });
}

}  // namespace lockstep
