// From the queue to a committed gang.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ids.h"
#include "common/log.h"
#include "coordinator/launch/gang_supervisor.h"
#include "coordinator/schedule/job_queue.h"

namespace lockstep {
namespace {

// 5 bits each: 200 bits.
constexpr int kSecretCharacters = 40;
// A job that was refused as often in a row no longer holds up those behind it.
constexpr int kRefusalsInPlace = 3;

std::string WorkerNames(const Gang& gang) {
  std::vector<std::string> names;
  for (const WorkerLife& life : gang.Lives()) names.push_back(life.name);
  return absl::StrJoin(names, ", ");
}

}  // namespace

void GangSupervisor::RunQueue() {
  const std::vector<JobRecord> pending = deps_.jobs.Pending();
  std::vector<QueuedJob> queue;
  for (const JobRecord& job : pending) {
    // Being reserved already.
    if (gangs_.count(job.id) > 0) continue;
    QueuedJob queued{&job, "", true};
    const auto held = held_back_.find(job.id);
    if (held != held_back_.end() && held->second.until.has_value()) {
      queued.held_back = held->second.reason;
      queued.keeps_place = held->second.refusals < kRefusalsInPlace;
    }
    queue.push_back(std::move(queued));
  }
  if (queue.empty()) return;
  const QueueDecision decision = DecideQueue(queue, deps_.workers.View());
  for (const auto& [job, reason] : decision.reasons) {
    const absl::Status status = deps_.jobs.SetReason(job, reason);
    if (!status.ok()) LOG(ERROR) << "job " << job << ": " << status.message();
  }
  for (const StartDecision& start : decision.starts) {
    const auto job = deps_.jobs.Get(start.job);
    if (job.ok()) Begin(*job, start.layout, start.placement);
  }
}

void GangSupervisor::Begin(const JobRecord& job, v1::ResolvedLayout layout,
                           Placement placement) {
  const auto generation = deps_.jobs.NextGeneration(job.id);
  if (!generation.ok()) {
    LOG(ERROR) << job.id << ": " << generation.status().message();
    return;
  }
  Gang gang;
  gang.id.set_job(job.id);
  gang.id.set_generation(*generation);
  gang.phase_began = Uptime();
  gang.placed = gang.phase_began;
  LaunchOrder order;
  order.gang = gang.id;
  order.spec = job.spec;
  order.layout = std::move(layout);
  order.secret = RandomBase32(kSecretCharacters);
  // An earlier attempt's own checkpoint is newer than what it started from.
  const auto checkpoints = deps_.jobs.Checkpoints(job.id);
  if (!checkpoints.empty()) {
    order.resume_checkpoint = checkpoints.front().path;
  } else {
    order.resume_checkpoint = job.resume_checkpoint;
    order.resume_other_job = !job.resume_checkpoint.empty();
  }
  for (size_t i = 0; i < placement.size(); ++i) {
    const PlacedRank& place = placement[i];
    GangRank rank;
    rank.life = {place.worker, place.incarnation};
    rank.device = place.device;
    deps_.workers.Hold(rank.life, place.device, gang.id,
                       static_cast<int64_t>(i));
    gang.ranks.push_back(std::move(rank));
  }
  order.placement = std::move(placement);
  gang.order = std::move(order);
  const v1::GangId id = gang.id;
  gangs_.insert_or_assign(job.id, std::move(gang));
  // Nobody may see a generation that a restart could use again.
  AfterStored([this, id] { Prepare(id); });
}

void GangSupervisor::Prepare(const v1::GangId& id) {
  const auto found = gangs_.find(id.job());
  if (found == gangs_.end() ||
      found->second.id.generation() != id.generation() ||
      found->second.phase != GangPhase::kNumbering) {
    return;
  }
  Gang& gang = found->second;
  gang.phase = GangPhase::kPreparing;
  gang.phase_began = Uptime();
  std::set<std::string> names;
  for (const WorkerLife& life : gang.Lives()) names.insert(life.name);
  gang.reservation.emplace(std::move(names),
                           Uptime() + options_.prepare_timeout);
  const auto prepares = MakePrepareGangs(*gang.order);
  for (const WorkerLife& life : gang.Lives()) {
    v1::CoordinatorMessage message;
    *message.mutable_prepare_gang() = prepares.at(life.name);
    if (!deps_.workers.Send(life, message)) {
      gang.reservation->OnWorkerGone(life.name);
    }
  }
}

void GangSupervisor::OnReservation(Gang& gang) {
  switch (gang.reservation->state()) {
    case GangReservation::State::kWaiting:
      return;
    case GangReservation::State::kAccepted:
      CommitReservation(gang);
      return;
    case GangReservation::State::kRefused: {
      const std::string reason = gang.reservation->reason();
      const std::string job = gang.id.job();
      DropReservation(job, reason);
      HoldBack(job, reason);
      return;
    }
  }
}

void GangSupervisor::HoldBack(const std::string& job,
                              const std::string& reason) {
  HeldBack& held = held_back_[job];
  absl::Duration wait = options_.retry_interval;
  for (int i = 0; i < held.refusals; ++i) {
    wait = std::min(2 * wait, options_.most_retry_interval);
  }
  ++held.refusals;
  held.until = Uptime() + wait;
  held.reason = absl::StrCat(reason, "; tried again soon");
}

void GangSupervisor::CommitReservation(Gang& gang) {
  const LaunchOrder& order = *gang.order;
  AttemptRecord& attempt = gang.attempt;
  attempt.job = gang.id.job();
  attempt.generation = gang.id.generation();
  attempt.started = deps_.clock.Now();
  attempt.layout = order.layout;
  attempt.secret = order.secret;
  for (const v1::RankAssignment& assignment : MakeAssignments(order)) {
    const GangRank& rank = gang.ranks[static_cast<size_t>(assignment.rank())];
    attempt.ranks.push_back({rank.life.name, rank.life.incarnation, rank.device,
                             assignment.memory_limit_bytes(), false});
  }
  const absl::Status started = deps_.jobs.StartAttempt(
      attempt, absl::StrCat("starting ", gang.ranks.size(),
                            gang.ranks.size() == 1 ? " rank" : " ranks", " on ",
                            WorkerNames(gang)));
  if (!started.ok()) {
    // It was cancelled or deleted meanwhile.
    DropReservation(gang.id.job(), std::string(started.message()));
    return;
  }
  deps_.rendezvous.Open(gang.id, order.secret);
  held_back_.erase(gang.id.job());
  gang.phase = GangPhase::kStarting;
  gang.phase_began = Uptime();
  gang.reservation.reset();
  gang.order.reset();
  LOG(INFO) << GangText(gang.id) << ": starts on " << WorkerNames(gang);
  v1::CoordinatorMessage commit;
  *commit.mutable_commit_gang()->mutable_gang() = gang.id;
  SendToAll(gang, commit);
}

void GangSupervisor::DropReservation(std::string job,
                                     const std::string& reason) {
  const auto found = gangs_.find(job);
  if (found == gangs_.end()) return;
  Gang gang = std::move(found->second);
  gangs_.erase(found);
  for (const WorkerLife& life : gang.Lives()) {
    SendStop(gang, life, reason, absl::ZeroDuration());
  }
  deps_.workers.ReleaseGang(gang.id);
  queue_changed_ = true;
}

void GangSupervisor::OnRankStarted(const v1::RankStarted& started) {
  Gang* gang = FindCommitted(started.gang());
  if (gang == nullptr || started.rank() < 0 ||
      started.rank() >= static_cast<int64_t>(gang->ranks.size())) {
    return;
  }
  gang->ranks[static_cast<size_t>(started.rank())].started = true;
  if (gang->phase != GangPhase::kStarting || !gang->AllStarted()) return;
  gang->phase = GangPhase::kRunning;
  gang->phase_began = Uptime();
  LogIfError(
      deps_.jobs.MarkRunning(gang->id.job(),
                             absl::StrCat("running on ", WorkerNames(*gang))),
      gang->id);
}

}  // namespace lockstep
