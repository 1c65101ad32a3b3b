// Values of a job file whose feature doesn't exist yet. A new feature takes its
// line out of here.
#include "absl/strings/str_cat.h"
#include "common/spec/spec_checks.h"
#include "common/spec/spec_printer.h"
#include "common/status_macros.h"

namespace lockstep::spec_internal {
namespace {

absl::Status NotBuilt(absl::string_view key, absl::string_view value) {
  return absl::UnimplementedError(
      absl::StrCat(key, ": ", value, " is not built yet"));
}

}  // namespace

absl::Status CheckBuilt(const v1::JobSpec& spec) {
  if (!spec.model().from().empty()) {
    return NotBuilt("model.from", "starting from a directory");
  }
  if (spec.data().tokenizer().kind() == v1::TOKENIZER_KIND_HUGGINGFACE) {
    return NotBuilt("data.tokenizer.kind", "huggingface");
  }
  const v1::DeviceRange& devices = spec.resources().devices();
  if (devices.min() < devices.max()) {
    return NotBuilt("resources.devices",
                    absl::StrCat("an elastic job (min ", devices.min(),
                                 ", max ", devices.max(), ")"));
  }
  if (spec.action().has_export_()) return NotBuilt("action.export", "export");
  return absl::OkStatus();
}

}  // namespace lockstep::spec_internal
