// What ranks report while they run.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "coordinator/launch/gang_supervisor.h"

namespace lockstep {

void GangSupervisor::OnHeartbeat(const v1::Heartbeat& heartbeat) {
  std::vector<Gang*> changed;
  for (const v1::Heartbeat::RankProgress& rank : heartbeat.ranks()) {
    Gang* gang = FindCommitted(rank.gang());
    if (gang == nullptr || !rank.has_progress()) continue;
    gang->progress[rank.rank()] = rank.progress();
    if (std::find(changed.begin(), changed.end(), gang) == changed.end()) {
      changed.push_back(gang);
    }
  }
  for (const Gang* gang : changed) {
    const auto history = deps_.jobs.History(gang->id.job());
    if (!history.ok()) continue;
    // Rank 0's word, and the fullest rank's memory.
    v1::Progress progress = gang->progress.begin()->second;
    for (const auto& [rank, other] : gang->progress) {
      progress.set_memory_bytes(
          std::max(progress.memory_bytes(), other.memory_bytes()));
    }
    if (progress.tokens_per_second() == 0) {
      progress.set_tokens_per_second(
          (*history)->summary().tokens_per_second.value_or(0));
    }
    (*history)->SetProgress(progress);
  }
}

void GangSupervisor::OnRankReport(int64_t sequence,
                                  const v1::RankReport& report) {
  Gang* gang = FindCommitted(report.gang());
  if (gang == nullptr) {
    LOG(WARNING) << GangText(report.gang()) << ": a report of rank "
                 << report.rank() << " is stale";
    return;
  }
  const std::string& job = gang->id.job();
  const int64_t generation = gang->id.generation();
  const auto history = deps_.jobs.History(job);
  if (!history.ok()) {
    LogIfError(history.status(), gang->id);
    return;
  }
  switch (report.report_case()) {
    case v1::RankReport::kStep:
      // All ranks see the same step; one of them writes the history.
      if (report.rank() == 0 &&
          (*history)->AppendStep(generation, report.step())) {
        CountStep(*gang, report.step());
      }
      break;
    case v1::RankReport::kEvaluation:
      if (report.rank() == 0) {
        (*history)->AppendEvaluation(generation, report.evaluation());
      }
      break;
    case v1::RankReport::kMemory: {
      v1::MemoryReport memory = report.memory();
      memory.set_rank(report.rank());
      if (!memory.has_predicted_peak_bytes()) {
        memory.set_predicted_peak_bytes(
            gang->attempt.layout.predicted_memory().peak_bytes());
      }
      LogIfError(deps_.jobs.RecordMemory(job, generation, memory), gang->id);
      break;
    }
    case v1::RankReport::kCheckpoint:
      OnCheckpoint(*gang, report.checkpoint());
      break;
    case v1::RankReport::kFacts:
      if (report.rank() != 0) break;
      gang->attempt.facts = report.facts();
      LogIfError(deps_.jobs.RecordFacts(job, generation, report.facts()),
                 gang->id);
      break;
    case v1::RankReport::kOutput:
      (*history)->AppendOutput(generation, sequence, report.output());
      break;
    case v1::RankReport::kWarning:
      LOG(WARNING) << GangText(gang->id) << " rank " << report.rank() << ": "
                   << report.warning();
      deps_.jobs.AddEvent(job, "warning", report.warning());
      break;
    case v1::RankReport::REPORT_NOT_SET:
      break;
  }
}

void GangSupervisor::CountStep(Gang& gang, const v1::StepReport& step) {
  const MetricLabels job = {{"job", gang.id.job()}};
  deps_.metrics.Increment(metric_names::kJobTokens, job,
                          static_cast<double>(step.tokens()));
  deps_.metrics.Observe(metric_names::kJobStepSeconds, job, step.seconds());
  if (!gang.placed.has_value()) return;
  deps_.metrics.Observe(metric_names::kGangStartSeconds, {},
                        absl::ToDoubleSeconds(Uptime() - *gang.placed));
  gang.placed.reset();
}

void GangSupervisor::OnCheckpoint(Gang& gang,
                                  const v1::CheckpointPrepared& prepared) {
  // Only the name is taken from the worker: what is in it may be deleted later.
  const std::string name =
      std::filesystem::path(prepared.path()).filename().string();
  const std::string wanted =
      absl::StrCat("step-", prepared.step(), ".g", gang.id.generation());
  if (name != wanted) {
    LOG(ERROR) << GangText(gang.id) << ": a checkpoint of step "
               << prepared.step() << " is called " << name << ", want "
               << wanted << "; it does not count";
    return;
  }
  CheckpointRecord checkpoint;
  checkpoint.job = gang.id.job();
  checkpoint.generation = gang.id.generation();
  checkpoint.step = prepared.step();
  checkpoint.path =
      absl::StrCat(deps_.jobs.JobFolder(checkpoint.job), "/", name);
  checkpoint.manifest_hash = prepared.manifest_hash();
  checkpoint.bytes = prepared.bytes();
  checkpoint.committed = deps_.clock.Now();
  const absl::Status committed = deps_.jobs.CommitCheckpoint(checkpoint);
  if (!committed.ok()) {
    LogIfError(committed, gang.id);
    return;
  }
  gang.committed_step = std::max(gang.committed_step, checkpoint.step);
  AfterStored([this, checkpoint] { OnCheckpointStored(checkpoint); });
}

void GangSupervisor::OnCheckpointStored(const CheckpointRecord& checkpoint) {
  v1::CoordinatorMessage message;
  v1::CheckpointCommitted& committed = *message.mutable_checkpoint_committed();
  committed.mutable_gang()->set_job(checkpoint.job);
  committed.mutable_gang()->set_generation(checkpoint.generation);
  committed.set_step(checkpoint.step);
  committed.set_path(checkpoint.path);
  if (Gang* gang = FindCommitted(committed.gang())) SendToAll(*gang, message);

  deps_.metrics.Increment(metric_names::kCheckpointsCommitted, {});
  const auto job = deps_.jobs.Get(checkpoint.job);
  if (!job.ok()) return;
  std::vector<CheckpointRecord> old = deps_.jobs.ForgetOldCheckpoints(
      checkpoint.job, job->spec.checkpoint().keep());
  if (old.empty()) return;
  // Forgotten first, deleted then: what is committed is always there.
  AfterStored([this, old] {
    deps_.post_blocking([old] {
      for (const CheckpointRecord& forgotten : old) {
        std::error_code error;
        std::filesystem::remove_all(forgotten.path, error);
        if (!error) continue;
        LOG(WARNING) << forgotten.path << ": an old checkpoint can't be "
                     << "deleted: " << error.message();
      }
    });
  });
}

}  // namespace lockstep
