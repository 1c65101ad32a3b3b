#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace lockstep {
namespace {

int TerminalWidth() {
  constexpr int kUsual = 80;
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kUsual;
  }
  return size.ws_col;
}

std::optional<std::string> Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace

Console ProcessConsole(const char* argv0) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  // A "dumb" terminal can't move its cursor.
  const bool smart = Variable("TERM").value_or("dumb") != "dumb";
  return {.out = std::cout,
          .err = std::cerr,
          .out_is_terminal = isatty(STDOUT_FILENO) == 1,
          .err_is_terminal = smart && isatty(STDERR_FILENO) == 1,
          .width = TerminalWidth,
          .variable = Variable,
          .program = argv0,
          .program_folder = self.parent_path().string()};
}

std::string ShellWord(const std::string& word) {
  bool plain = !word.empty();
  for (const char c : word) {
    plain = plain &&
            (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
             std::string_view("_-./:=,+@%").find(c) != std::string_view::npos);
  }
  if (plain) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace lockstep
