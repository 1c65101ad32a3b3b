#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/interrupt_handler.h"
#include "cli/local_run.h"
#include "common/bytes.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct RunOptions {
  LocalRunOptions run;
  std::string device = "cpu";
  std::string memory;
  std::string format = "table";
};

absl::StatusOr<ExitCode> Run(RunOptions options, CommandContext& context) {
  LocalRunOptions& run = options.run;
  run.flags = context.flags;
  if (options.device == "cuda") {
    return absl::UnimplementedError("--device cuda is not built yet");
  }
  if (!options.memory.empty()) {
    const auto bytes = ParseBytes(options.memory);
    if (!bytes.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--memory-per-device: ", bytes.status().message()));
    }
    run.memory_per_device = *bytes;
  }
  ASSIGN_OR_RETURN(run.format,
                   ParseOutputFormat(options.format,
                                     {OutputFormat::kTable, OutputFormat::kJson,
                                      OutputFormat::kYaml}));
  LocalRun local(run, context.console);
  InterruptHandler interrupts(
      [&local](int count) { return local.Interrupt(count); });
  return local.Run();
}

}  // namespace

void AddRunCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand(
      "run", "train a job on a local cluster, from start to report");
  verb->add_option("job", options->run.job_file, "the job file")
      ->required()
      ->type_name("JOB.yaml");
  verb->add_option("--local", options->run.local,
                   "workers of one device each (default: the job's devices, "
                   "else 1)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--device", options->device, "kind of device: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  verb->add_option("--memory-per-device", options->memory,
                   "memory of each device, 512MiB say; replaces the job's "
                   "request")
      ->type_name("SIZE");
  verb->add_option("--set", options->run.settings,
                   "change a key of the job, train.steps=50 say; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--steps-out", options->run.steps_out,
                   "file for a JSON line per step")
      ->type_name("FILE");
  verb->add_option("--resume", options->run.resume,
                   "start from the newest checkpoint of this job")
      ->type_name("JOB");
  AddOutputOption(*verb, &options->format, "table, json or yaml");
  OnChosen(*verb, context, [&context, options] {
    return Finish(context.console, Run(*options, context));
  });
}

}  // namespace lockstep
