#include "coordinator/daemon_options.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::Status CheckBuilt(const DaemonFlags& flags) {
  const std::pair<const char*, const std::string*> unbuilt[] = {
      {"--http", &flags.http},         {"--config", &flags.config},
      {"--tls-cert", &flags.tls_cert}, {"--tls-key", &flags.tls_key},
      {"--tls-ca", &flags.tls_ca},     {"--token-file", &flags.token_file}};
  for (const auto& [name, value] : unbuilt) {
    if (value->empty()) continue;
    return absl::UnimplementedError(absl::StrCat(name, " is not built yet"));
  }
  if (absl::StartsWith(flags.store, "etcd:")) {
    return absl::UnimplementedError("--store etcd: is not built yet");
  }
  return absl::OkStatus();
}

absl::StatusOr<Address> CheckAddress(const char* flag,
                                     const std::string& text) {
  absl::StatusOr<Address> address = ParseAddress(text);
  if (address.ok()) return address;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", address.status().message()));
}

}  // namespace

absl::StatusOr<DaemonOptions> CheckFlags(const DaemonFlags& flags) {
  RETURN_IF_ERROR(CheckBuilt(flags));
  DaemonOptions options;
  ASSIGN_OR_RETURN(options.listen, CheckAddress("--listen", flags.listen));
  if (!options.listen.IsLoopback() && !flags.insecure) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", flags.listen, " is reachable from other hosts, and TLS ",
        "is not built yet: listen on 127.0.0.1, or say --insecure"));
  }
  absl::string_view store = flags.store;
  if (!absl::ConsumePrefix(&store, "sqlite:") || store.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--store is \"", flags.store, "\", want sqlite:DIR/state.db"));
  }
  options.store_path = std::string(store);
  if (flags.job_root.empty()) {
    return absl::InvalidArgumentError("--job-root is missing");
  }
  std::error_code error;
  options.job_root =
      std::filesystem::absolute(flags.job_root, error).lexically_normal();
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--job-root ", flags.job_root, ": ", error.message()));
  }
  // Paths are built as JOB_ROOT/J.
  if (options.job_root.size() > 1 && options.job_root.back() == '/') {
    options.job_root.pop_back();
  }
  if (!flags.metrics.empty()) {
    ASSIGN_OR_RETURN(options.metrics, CheckAddress("--metrics", flags.metrics));
  }
  if (flags.log_format == "json") {
    options.log_format = LogFormat::kJson;
  } else if (flags.log_format != "text") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--log-format is \"", flags.log_format, "\", want text or json"));
  }
  return options;
}

}  // namespace lockstep
