// LogReader: the lines of one attempt's rank logs,
// JOB_ROOT/J/logs/gG/rank-R.log, as they grow.
//
//   LogReader reader(folder, rank, tail);
//   while (...) for (LogLine& line : reader.Poll(limit)) ...
//   reader.Finish()                       // what has no line end yet
//
// Lines of several ranks are merged by the time that they begin with; a line
// without one stays behind the line before it. Threads: one at a time.
#ifndef LOCKSTEP_COORDINATOR_JOBS_LOG_READER_H_
#define LOCKSTEP_COORDINATOR_JOBS_LOG_READER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

class LogReader {
 public:
  // `rank`: only that one. `tail`: begin with the last lines of each rank; 0 is
  // all.
  LogReader(std::string folder, std::optional<int64_t> rank, int64_t tail);

  // Complete lines that are new, at most about a megabyte; empty when there are
  // none now.
  std::vector<v1::LogLine> Poll();
  // What is left without a line end.
  std::vector<v1::LogLine> Finish();

 private:
  struct File {
    std::string path;
    int64_t offset = 0;
    std::string partial;
  };
  void FindFiles();
  void ReadMore(int64_t rank, File& file, std::vector<v1::LogLine>& lines);

  const std::string folder_;
  const std::optional<int64_t> rank_;
  const int64_t tail_;
  std::map<int64_t, File> files_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_JOBS_LOG_READER_H_
