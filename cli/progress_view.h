// ProgressView: shows a followed job on the console's stderr: one line with a
// bar on a terminal, plain lines now and then elsewhere.
//
// Not thread-safe.
#ifndef LOCKSTEP_CLI_PROGRESS_VIEW_H_
#define LOCKSTEP_CLI_PROGRESS_VIEW_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "cli/console.h"
#include "cli/job_progress.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

class ProgressView {
 public:
  enum class Detail {
    // Everything.
    kAll,
    // Only the bar, on a terminal, warnings and why it waits: for commands
    // whose result is on stdout.
    kBar,
  };
  ProgressView(Console& console, Detail detail)
      : console_(console), detail_(detail) {}
  // Takes the bar away.
  ~ProgressView();

  // `now` is the time of arrival.
  void Show(const v1::JobUpdate& update, absl::Time now);
  // Prints a line of its own, above the bar.
  void PrintLine(const std::string& line);
  // Takes the bar away until the next update.
  void Clear();

  const JobProgress& progress() const { return progress_; }

 private:
  void ShowJob(const v1::JobInfo& job);
  void ShowStep(absl::Time now);
  void ShowPhase(absl::Time now);
  void Draw(absl::Time now);

  Console& console_;
  const Detail detail_;
  JobProgress progress_;
  // Terminal: when the bar was drawn last, and whether it is there.
  absl::Time drawn_ = absl::InfinitePast();
  bool bar_is_there_ = false;
  // Elsewhere: what the last lines said.
  absl::Time printed_ = absl::InfinitePast();
  int tenths_printed_ = 0;
  std::string phase_printed_;
  std::string job_line_printed_;
  int64_t job_updates_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PROGRESS_VIEW_H_
