// Logging and CHECK. LOG lines go to stderr as text, or as JSON lines after
// SetLogFormat; a line carries time, level, program and the context that
// SetLogContext fixed (job, gang, rank).
//
//   LOG(INFO) << "gang " << gang << " prepared";
//   CHECK(a == b) << "why this can't be";   // broken invariants of ours only
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_COMMON_LOG_H_
#define LOCKSTEP_COMMON_LOG_H_

#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

namespace lockstep {

enum class LogLevel { kInfo, kWarning, kError, kFatal };
enum class LogFormat { kText, kJson };

// Call once from main, before other threads exist.
void SetLogFormat(LogFormat format);
// Name of the program and fixed context, "job=kjv-1a2b rank=0" say.
void SetLogContext(std::string_view program, std::string_view context);
// Lines below `level` are dropped. Starts at kInfo.
void SetLogThreshold(LogLevel level);

namespace log_internal {

// Collects one line and writes it when it goes; a kFatal line ends the process
// with abort().
class LogLine {
 public:
  LogLine(LogLevel level, const char* file, int line);
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  const LogLevel level_;
  const char* const file_;
  const int line_;
  std::ostringstream stream_;
};

// Gives CHECK's `<<` a lower precedence than `?:`.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace log_internal
}  // namespace lockstep

#define LOCKSTEP_LOG_INFO ::lockstep::LogLevel::kInfo
#define LOCKSTEP_LOG_WARNING ::lockstep::LogLevel::kWarning
#define LOCKSTEP_LOG_ERROR ::lockstep::LogLevel::kError

#ifdef LOG
#undef LOG
#endif
#ifdef CHECK
#undef CHECK
#endif

#define LOG(level)                                                            \
  ::lockstep::log_internal::LogLine(LOCKSTEP_LOG_##level, __FILE__, __LINE__) \
      .stream()

#define CHECK(condition)                                                  \
  (condition) ? (void)0                                                   \
              : ::lockstep::log_internal::Voidify() &                     \
                    ::lockstep::log_internal::LogLine(                    \
                        ::lockstep::LogLevel::kFatal, __FILE__, __LINE__) \
                            .stream()                                     \
                        << "check failed: " #condition " "

#endif  // LOCKSTEP_COMMON_LOG_H_
