#include "common/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/utf8.h"

namespace lockstep {
namespace {

// What each line carries; changed by main before other threads exist, and read
// under the lock all the same, since a library may start threads early.
struct Header {
  std::string program;
  std::string context;
};

std::mutex& HeaderMutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

Header& SharedHeader() {
  static Header* const header = new Header;
  return *header;
}

std::atomic<LogFormat> g_format{LogFormat::kText};
std::atomic<LogLevel> g_threshold{LogLevel::kInfo};

std::string_view LevelWord(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kFatal:
      return "fatal";
  }
  return "info";
}

std::string_view Basename(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Appends `text` so that it stays on one line and, with quotes and backslashes
// escaped too, is the inside of a JSON string. Bytes that are no UTF-8 become
// U+FFFD in JSON and pass as they are in text.
enum class Escape { kText, kJson };

void AppendEscaped(std::string& out, std::string_view text, Escape escape) {
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += escape == Escape::kJson ? "\\t" : "\t";
    } else if (c < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else if (escape == Escape::kJson && (c == '"' || c == '\\')) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (escape == Escape::kJson && c >= 0x80) {
      const size_t length = Utf8Length(text.substr(i));
      if (length == 0) {
        out += "\\ufffd";
      } else {
        out += text.substr(i, length);
        i += length;
        continue;
      }
    } else {
      out += static_cast<char>(c);
    }
    ++i;
  }
}

void AppendJsonField(std::string& out, std::string_view key,
                     std::string_view value) {
  if (out.size() > 1) out += ',';
  out += '"';
  AppendEscaped(out, key, Escape::kJson);
  out += "\":\"";
  AppendEscaped(out, value, Escape::kJson);
  out += '"';
}

std::string Timestamp() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(),
                          absl::UTCTimeZone());
}

std::string FormatJson(LogLevel level, const Header& header,
                       std::string_view source, std::string_view message) {
  std::string out = "{";
  AppendJsonField(out, "time", Timestamp());
  AppendJsonField(out, "level", LevelWord(level));
  AppendJsonField(out, "program", header.program);
  for (absl::string_view pair :
       absl::StrSplit(header.context, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    AppendJsonField(out, parts.first, parts.second);
  }
  AppendJsonField(out, "source", source);
  AppendJsonField(out, "message", message);
  out += "}\n";
  return out;
}

std::string FormatText(LogLevel level, const Header& header,
                       std::string_view source, std::string_view message) {
  std::string out = Timestamp();
  out += ' ';
  out += LevelWord(level);
  out += ' ';
  if (!header.program.empty()) out += header.program + " ";
  if (!header.context.empty()) out += "[" + header.context + "] ";
  // The place in the source is for us: only where our own code is broken.
  if (level == LogLevel::kFatal) {
    out += source;
    out += ": ";
  }
  AppendEscaped(out, message, Escape::kText);
  out += '\n';
  return out;
}

// One write(2) a line, so that lines of several processes on one file don't
// mix. Only a signal or a full pipe makes it more than one.
void WriteAll(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return;  // There is no place left to complain.
    }
    line.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void SetLogFormat(LogFormat format) { g_format.store(format); }

void SetLogContext(std::string_view program, std::string_view context) {
  std::lock_guard<std::mutex> lock(HeaderMutex());
  SharedHeader() = {std::string(program), std::string(context)};
}

void SetLogThreshold(LogLevel level) { g_threshold.store(level); }

namespace log_internal {

LogLine::LogLine(LogLevel level, const char* file, int line)
    : level_(level), file_(file), line_(line) {}

LogLine::~LogLine() {
  if (level_ >= g_threshold.load() || level_ == LogLevel::kFatal) {
    Header header;
    {
      std::lock_guard<std::mutex> lock(HeaderMutex());
      header = SharedHeader();
    }
    const std::string source =
        std::string(Basename(file_)) + ":" + std::to_string(line_);
    WriteAll(g_format.load() == LogFormat::kJson
                 ? FormatJson(level_, header, source, stream_.str())
                 : FormatText(level_, header, source, stream_.str()));
  }
  if (level_ == LogLevel::kFatal) std::abort();
}

}  // namespace log_internal
}  // namespace lockstep
