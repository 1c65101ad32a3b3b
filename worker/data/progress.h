// Progress: turns bytes done into calls of a DataOptions::progress, not too
// many.
#ifndef LOCKSTEP_WORKER_DATA_PROGRESS_H_
#define LOCKSTEP_WORKER_DATA_PROGRESS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

class Progress {
 public:
  using Report = std::function<void(std::string_view phase, double fraction)>;

  // `report` may be empty.
  explicit Progress(Report report) : report_(std::move(report)) {}

  void Start(std::string_view phase, int64_t total) {
    phase_ = phase;
    total_ = std::max<int64_t>(total, 1);
    done_ = reported_ = 0;
    Tell();
  }
  void Add(int64_t done) {
    constexpr int64_t kStep = 1 << 20;
    done_ += done;
    if (done_ - reported_ >= kStep) Tell();
  }
  // Says again where it is: it is alive.
  void Tell() {
    reported_ = done_;
    if (!report_) return;
    report_(phase_, std::min(1.0, static_cast<double>(done_) /
                                      static_cast<double>(total_)));
  }

 private:
  const Report report_;
  std::string phase_;
  int64_t total_ = 1;
  int64_t done_ = 0;
  int64_t reported_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_PROGRESS_H_
