// JobProgress: what is known of a followed job, as far as a person wants to see
// it go by. A function of the updates it was given.
#ifndef LOCKSTEP_CLI_JOB_PROGRESS_H_
#define LOCKSTEP_CLI_JOB_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

class JobProgress {
 public:
  void Add(const v1::JobUpdate& update);

  const v1::JobInfo& job() const { return job_; }
  int64_t step() const { return step_.step(); }
  int64_t steps() const { return job_.steps(); }
  // Share of the steps done, 0 to 1; absent before the first step or while the
  // number of steps isn't known.
  std::optional<double> StepFraction() const;
  // Of the phase that goes on where no steps are taken: "tokenizing"; empty
  // while training.
  const std::string& phase() const { return phase_; }
  std::optional<double> PhaseFraction() const;
  // Time to the last step at the recent pace.
  std::optional<absl::Duration> TimeLeft() const;

  // "step 168/400  loss 2.3140  12.3k tokens/s  412 MiB  eta 1m02s"
  std::string StepText() const;
  // One line for a terminal, at most `width` characters, with a bar.
  std::string BarLine(int width) const;

 private:
  v1::JobInfo job_;
  v1::StepReport step_;
  v1::Progress progress_;
  std::string phase_;
  // Seconds and tokens of the newest steps.
  struct Pace {
    double seconds = 0.0;
    int64_t tokens = 0;
  };
  std::deque<Pace> pace_;
};

// "validation loss 2.3140, 1.5931 bits per byte" or "..., accuracy 0.9312".
std::string EvaluationText(const v1::EvaluationReport& report);
// "dp 2, micro-batch 16": degrees that are not 1.
std::string LayoutText(const v1::Layout& layout);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_JOB_PROGRESS_H_
