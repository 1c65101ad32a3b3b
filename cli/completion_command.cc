#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"

namespace lockstep {
namespace {

// Sub-verbs and flags that may follow `verb`.
std::string Words(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::App* sub :
       verb.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(sub->get_name());
  }
  for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        words.push_back("--" + name);
      }
    }
  }
  return absl::StrJoin(words, " ");
}

// A line of the script's `case` per verb: "'get jobs') words='...' ;;".
void AppendCases(const CLI::App& verb, const std::string& path,
                 std::string& out) {
  absl::StrAppend(&out, "    '", path, "') words='", Words(verb), "' ;;\n");
  for (const CLI::App* sub :
       verb.get_subcommands([](const CLI::App*) { return true; })) {
    AppendCases(*sub,
                path.empty() ? sub->get_name()
                             : absl::StrCat(path, " ", sub->get_name()),
                out);
  }
}

std::string BashScript(const CLI::App& app) {
  std::string cases;
  AppendCases(app, "", cases);
  return absl::StrCat(R"script(# bash completion of lockstep; load it by
#   source <(lockstep completion bash)
_lockstep_words() {
  local words=''
  case "$1" in
)script",
                      cases, R"script(    *) return 1 ;;
  esac
  echo "$words"
}
_lockstep() {
  local path='' word longer current="${COMP_WORDS[COMP_CWORD]}"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    longer="${path:+$path }$word"
    _lockstep_words "$longer" > /dev/null && path="$longer"
  done
  COMPREPLY=($(compgen -W "$(_lockstep_words "$path")" -- "$current"))
}
complete -o default -F _lockstep lockstep
)script");
}

}  // namespace

void AddCompletionCommand(CLI::App& app, CommandContext& context) {
  CLI::App* verb =
      app.add_subcommand("completion", "print a shell's completion script");
  verb->require_subcommand(1);
  CLI::App* bash = verb->add_subcommand("bash", "for bash");
  OnChosen(*bash, context, [&app, &context] {
    context.console.out << BashScript(app);
    return ExitCode::kDone;
  });
}

}  // namespace lockstep
