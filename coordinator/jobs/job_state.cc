#include "coordinator/jobs/job_state.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

struct Edge {
  JobState from;
  JobState to;
};

constexpr Edge kEdges[] = {
    {v1::JOB_STATE_PENDING, v1::JOB_STATE_STARTING},
    // Can never run; cancelled while it waits.
    {v1::JOB_STATE_PENDING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_PENDING, v1::JOB_STATE_CANCELLED},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_RESTARTING},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_CANCELLED},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_CANCELLED},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_RESTARTING},
    // Preempted, with a checkpoint.
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_PENDING},
    {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_STARTING},
    // No devices.
    {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_PENDING},
    {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_CANCELLED},
};

}  // namespace

bool CanMove(JobState from, JobState to) {
  for (const Edge& edge : kEdges) {
    if (edge.from == from && edge.to == to) return true;
  }
  return false;
}

std::string JobStateWord(JobState state) {
  const std::string name = v1::JobState_Name(state);
  return std::string(absl::StripPrefix(name, "JOB_STATE_"));
}

std::string OutcomeWord(v1::Outcome outcome) {
  if (outcome == v1::OUTCOME_UNSPECIFIED) return "";
  const std::string name = v1::Outcome_Name(outcome);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "OUTCOME_"));
}

}  // namespace lockstep
