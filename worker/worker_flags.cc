#include "worker/worker_flags.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/bytes.h"
#include "common/status_macros.h"
#include "common/version.h"

namespace lockstep {
namespace {

struct RawFlags {
  std::string coordinator;
  std::string devices = "auto";
  std::string job_root;
  std::string data_root;
  std::string name;
  std::string memory_per_device;
  int64_t threads = 0;
  std::string advertise;
  std::string data_interface;
  std::string metrics;
  std::string log_format = "text";
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  std::string token_file;
  bool insecure = false;
};

void DeclareFlags(CLI::App& app, RawFlags& raw) {
  app.add_option("--coordinator", raw.coordinator,
                 "HOST:PORT of the coordinator, or several with commas")
      ->required();
  app.add_option("--devices", raw.devices,
                 "auto, cpu:N or cuda:0,1 (default auto)");
  app.add_option("--job-root", raw.job_root,
                 "folder for jobs' files, shared by all hosts")
      ->required();
  app.add_option("--data-root", raw.data_root,
                 "folder under which jobs' data lies, shared by all hosts")
      ->required();
  app.add_option("--name", raw.name,
                 "name of this worker (default: the host's, with a number "
                 "where several workers share it)");
  app.add_option("--memory-per-device", raw.memory_per_device,
                 "memory of each CPU device, as in 1GiB (default: 90 % of the "
                 "host's or the cgroup's, shared by the devices)");
  app.add_option("--threads", raw.threads,
                 "compute threads of each rank (default: cores / devices)");
  app.add_option("--advertise", raw.advertise,
                 "host name or address by which others reach this host");
  app.add_option("--data-interface", raw.data_interface,
                 "network interface or address for the ranks' own traffic");
  app.add_option("--metrics", raw.metrics,
                 "HOST:PORT that serves /metrics, /healthz and /readyz");
  app.add_option("--log-format", raw.log_format, "text or json");
  app.add_option("--tls-cert", raw.tls_cert, "not built yet");
  app.add_option("--tls-key", raw.tls_key, "not built yet");
  app.add_option("--tls-ca", raw.tls_ca, "not built yet");
  app.add_option("--token-file", raw.token_file, "not built yet");
  app.add_flag("--insecure", raw.insecure,
               "talk to a coordinator off this host without TLS");
}

std::optional<std::string> NonEmpty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

absl::StatusOr<std::string> AbsolutePath(const std::string& flag,
                                         const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (path.empty() || error) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " '", path, "' is no path"));
  }
  return absolute.lexically_normal().string();
}

// A name becomes part of messages and metrics, and a coordinator's key.
absl::Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= 63 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
          std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--name '", name,
                   "' has other characters than letters, digits, '.', '_' and "
                   "'-', or more than 63"));
}

absl::StatusOr<WorkerFlags> CheckFlags(const RawFlags& raw) {
  WorkerFlags flags;
  for (const std::string& unbuilt :
       {raw.tls_cert, raw.tls_key, raw.tls_ca, raw.token_file}) {
    if (!unbuilt.empty()) {
      return absl::UnimplementedError(
          "--tls-cert, --tls-key, --tls-ca and --token-file are not built yet");
    }
  }
  for (const std::string& text :
       std::vector<std::string>(absl::StrSplit(raw.coordinator, ','))) {
    auto address = ParseAddress(text);
    if (!address.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--coordinator: ", address.status().message()));
    }
    if (!address->IsLoopback() && !raw.insecure) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--coordinator ", text,
          " is not on this host, and TLS is not built yet: say --insecure to "
          "talk to it in the clear, on a private network only"));
    }
    flags.coordinators.push_back(*std::move(address));
  }
  if (!raw.metrics.empty()) {
    auto address = ParseAddress(raw.metrics);
    if (!address.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--metrics: ", address.status().message()));
    }
    flags.metrics = *std::move(address);
  }
  if (!raw.memory_per_device.empty()) {
    auto bytes = ParseBytes(raw.memory_per_device);
    if (!bytes.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--memory-per-device: ", bytes.status().message()));
    }
    flags.memory_per_device_bytes = *bytes;
  }
  if (raw.threads < 0 || raw.threads > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads is ", raw.threads,
                     "; want 1 to 4096, or 0 for the default"));
  }
  if (raw.threads > 0) flags.threads = raw.threads;
  if (raw.log_format != "text" && raw.log_format != "json") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--log-format is '", raw.log_format, "'; want text or json"));
  }
  flags.log_format =
      raw.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  flags.name = NonEmpty(raw.name);
  if (flags.name.has_value()) RETURN_IF_ERROR(CheckName(*flags.name));
  ASSIGN_OR_RETURN(flags.job_root, AbsolutePath("--job-root", raw.job_root));
  ASSIGN_OR_RETURN(flags.data_root, AbsolutePath("--data-root", raw.data_root));
  flags.devices = raw.devices;
  flags.advertise = NonEmpty(raw.advertise);
  flags.data_interface = NonEmpty(raw.data_interface);
  return flags;
}

}  // namespace

absl::StatusOr<std::variant<WorkerFlags, FlagsText>> ParseWorkerFlags(
    int argc, const char* const* argv) {
  CLI::App app("Offers this host's devices to a Lockstep coordinator.",
               "lockstep-worker");
  RawFlags raw;
  DeclareFlags(app, raw);
  const std::string version =
      absl::StrCat("lockstep-worker ", std::string(Version()));
  app.set_version_flag("--version", version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return FlagsText{app.help()};
  } catch (const CLI::CallForVersion&) {
    return FlagsText{version + "\n"};
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  ASSIGN_OR_RETURN(WorkerFlags flags, CheckFlags(raw));
  return flags;
}

}  // namespace lockstep
