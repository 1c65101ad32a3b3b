#include "cli/contexts.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cli/text_file.h"
#include "common/status_macros.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 1 << 20;

std::optional<std::string> FilePath(const Console& console) {
  const auto configured = console.variable("XDG_CONFIG_HOME");
  if (configured.has_value() && !configured->empty()) {
    return *configured + "/lockstep/contexts.json";
  }
  const auto home = console.variable("HOME");
  if (!home.has_value() || home->empty()) return std::nullopt;
  return *home + "/.config/lockstep/contexts.json";
}

}  // namespace

absl::StatusOr<Contexts> Contexts::Load(const Console& console) {
  Contexts contexts;
  const auto path = FilePath(console);
  if (!path.has_value()) return contexts;
  const auto text = ReadTextFile(*path, kMostBytes);
  if (absl::IsNotFound(text.status())) return contexts;
  if (!text.ok()) return text.status();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const absl::Status broken = absl::InvalidArgumentError(absl::StrCat(
      *path,
      ": want {\"current\": NAME, \"contexts\": {NAME: {\"coordinator\": "
      "\"HOST:PORT\"}}}"));
  if (!json.is_object()) return broken;
  const auto current = json.find("current");
  if (current != json.end()) {
    if (!current->is_string()) return broken;
    contexts.current = current->get<std::string>();
  }
  const auto named = json.find("contexts");
  if (named == json.end()) return contexts;
  if (!named->is_object()) return broken;
  for (const auto& [name, context] : named->items()) {
    if (!context.is_object() || !context.contains("coordinator") ||
        !context["coordinator"].is_string()) {
      return broken;
    }
    contexts.coordinators[name] = context["coordinator"].get<std::string>();
  }
  return contexts;
}

absl::Status Contexts::Save(const Console& console) const {
  const auto path = FilePath(console);
  if (!path.has_value()) {
    return absl::FailedPreconditionError(
        "contexts are kept in a file below HOME, which is not set");
  }
  nlohmann::ordered_json json;
  json["current"] = current;
  json["contexts"] = nlohmann::ordered_json::object();
  for (const auto& [name, address] : coordinators) {
    json["contexts"][name]["coordinator"] = address;
  }
  RETURN_IF_ERROR(
      MakeFolders(std::filesystem::path(*path).parent_path().string()));
  using Json = nlohmann::ordered_json;
  return ReplaceTextFile(
      *path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<std::string> Contexts::CurrentAddress() const {
  const auto found = coordinators.find(current);
  if (current.empty() || found == coordinators.end()) return std::nullopt;
  return found->second;
}

}  // namespace lockstep
