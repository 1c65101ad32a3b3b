// Every Prometheus name of Lockstep, with its unit in the suffix, and the help
// text that /metrics prints (docs/metrics.md lists them for people).
//
// Labels: job (its id), state, outcome, cause, rank, worker: the words of
// design.md. Counters end in _total.
#ifndef LOCKSTEP_COMMON_METRICS_METRIC_NAMES_H_
#define LOCKSTEP_COMMON_METRICS_METRIC_NAMES_H_

#include <array>
#include <cstddef>

namespace lockstep {

struct CounterName {
  const char* name;
  const char* help;
};

struct GaugeName {
  const char* name;
  const char* help;
};

struct HistogramName {
  const char* name;
  const char* help;
  // Upper bounds, rising; a last one of infinity is added.
  std::array<double, 12> buckets;
};

namespace metric_names {

inline constexpr std::array<double, 12> kShortSeconds = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0};
inline constexpr std::array<double, 12> kStepSeconds = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0};
inline constexpr std::array<double, 12> kLongSeconds = {
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0};

// ---- coordinator ----
inline constexpr GaugeName kJobs = {"lockstep_jobs", "Jobs by state."};
inline constexpr CounterName kJobsSubmitted = {"lockstep_jobs_submitted_total",
                                               "Jobs accepted by submit."};
inline constexpr CounterName kJobsRefused = {
    "lockstep_jobs_refused_total", "Jobs that submit refused, by status code."};
inline constexpr CounterName kJobsEnded = {"lockstep_jobs_ended_total",
                                           "Jobs that ended, by state."};
inline constexpr CounterName kAttemptsEnded = {
    "lockstep_attempts_ended_total",
    "Attempts of jobs that ended, by outcome and cause."};
inline constexpr CounterName kTransitions = {
    "lockstep_job_transitions_total", "Changes of job state, by new state."};
inline constexpr GaugeName kWorkers = {"lockstep_workers",
                                       "Known workers by state."};
inline constexpr GaugeName kDevices = {
    "lockstep_devices", "Devices of ready workers by state: free or busy."};
inline constexpr CounterName kWorkersLost = {
    "lockstep_workers_lost_total",
    "Times that a worker's heartbeats stayed away too long."};
inline constexpr HistogramName kQueueWaitSeconds = {
    "lockstep_queue_wait_seconds",
    "Time from submission of a job to the start of its first attempt.",
    kLongSeconds};
inline constexpr HistogramName kGangStartSeconds = {
    "lockstep_gang_start_seconds",
    "Time from placing a gang to its first step.", kLongSeconds};
inline constexpr HistogramName kStoreCommitSeconds = {
    "lockstep_store_commit_seconds",
    "Time of one durable commit of the job store.", kShortSeconds};
inline constexpr CounterName kRpcs = {
    "lockstep_rpcs_total", "Remote calls that ended, by method and code."};
inline constexpr GaugeName kWatchStreams = {"lockstep_watch_streams",
                                            "Clients that watch a job now."};
inline constexpr GaugeName kRendezvousKeys = {
    "lockstep_rendezvous_keys", "Keys kept for the rendezvous of live gangs."};
inline constexpr CounterName kCheckpointsCommitted = {
    "lockstep_checkpoints_committed_total", "Checkpoints committed."};

// ---- jobs, by the coordinator; label job ----
inline constexpr GaugeName kJobStep = {"lockstep_job_step",
                                       "Newest optimizer step of the job."};
inline constexpr GaugeName kJobSteps = {"lockstep_job_steps",
                                        "Steps that the job takes in all."};
inline constexpr GaugeName kJobLossNats = {
    "lockstep_job_loss_nats", "Training loss of the newest step, in nats."};
inline constexpr GaugeName kJobValidationLossNats = {
    "lockstep_job_validation_loss_nats",
    "Validation loss of the newest evaluation, in nats."};
inline constexpr GaugeName kJobGradNorm = {
    "lockstep_job_grad_norm", "Global gradient norm before clipping."};
inline constexpr GaugeName kJobLearningRate = {
    "lockstep_job_learning_rate", "Learning rate of the newest step."};
inline constexpr CounterName kJobTokens = {
    "lockstep_job_tokens_total", "Valid target tokens that were trained on."};
inline constexpr GaugeName kJobTokensPerSecond = {
    "lockstep_job_tokens_per_second", "Training speed now."};
inline constexpr HistogramName kJobStepSeconds = {
    "lockstep_job_step_seconds", "Wall time of one optimizer step.",
    kStepSeconds};
inline constexpr GaugeName kJobMemoryBytes = {
    "lockstep_job_memory_bytes",
    "Counted device memory of the job's fullest rank."};

// ---- worker ----
inline constexpr GaugeName kWorkerInfo = {
    "lockstep_worker_info", "Always 1; labels worker, version, device_kind."};
inline constexpr GaugeName kWorkerConnected = {
    "lockstep_worker_connected",
    "1 while the worker's session with the coordinator is open, else 0."};
inline constexpr GaugeName kWorkerDevices = {
    "lockstep_worker_devices",
    "The worker's devices by state: free, reserved or busy."};
inline constexpr GaugeName kWorkerRanksRunning = {
    "lockstep_worker_ranks_running", "Rank processes that run here now."};
inline constexpr CounterName kWorkerRanksStarted = {
    "lockstep_worker_ranks_started_total", "Rank processes started."};
inline constexpr CounterName kWorkerRanksExited = {
    "lockstep_worker_ranks_exited_total",
    "Rank processes that ended, by cause; none is a good end."};
inline constexpr GaugeName kWorkerRankStep = {
    "lockstep_worker_rank_step",
    "Newest step that a rank has reported; labels job, rank."};
inline constexpr GaugeName kWorkerRankMemoryBytes = {
    "lockstep_worker_rank_memory_bytes",
    "Counted device memory of a rank; labels job, rank."};
inline constexpr GaugeName kWorkerRankResidentBytes = {
    "lockstep_worker_rank_resident_bytes",
    "Resident memory of a rank's process; labels job, rank."};
inline constexpr GaugeName kWorkerRankProgressAgeSeconds = {
    "lockstep_worker_rank_progress_age_seconds",
    "Time since a rank last made progress; labels job, rank."};
inline constexpr CounterName kWorkerHeartbeats = {
    "lockstep_worker_heartbeats_total", "Heartbeats sent."};
inline constexpr CounterName kWorkerReconnects = {
    "lockstep_worker_reconnects_total",
    "Sessions with the coordinator that were lost and opened again."};
inline constexpr GaugeName kWorkerUnacknowledged = {
    "lockstep_worker_unacknowledged_messages",
    "Messages kept until the coordinator has stored them."};

}  // namespace metric_names
}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_METRIC_NAMES_H_
