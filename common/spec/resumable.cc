// CheckResumable: may a job start from another's checkpoint?
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/spec/job_spec.h"
#include "common/spec/spec_printer.h"
#include "google/protobuf/message.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What must match, taken out of a spec.
v1::JobSpec Core(v1::JobSpec spec) {
  FillDefaults(spec);
  v1::JobSpec core;
  *core.mutable_model() = spec.model();
  core.set_task(spec.task());
  *core.mutable_data() = spec.data();
  core.mutable_train()->set_sequence_length(spec.train().sequence_length());
  core.mutable_train()->set_seed(spec.train().seed());
  core.mutable_train()->mutable_optimizer()->set_name(
      spec.train().optimizer().name());
  return core;
}

// Path and both values of the first field that differs.
std::optional<std::string> FirstDifference(const Message& a, const Message& b,
                                           const std::string& path) {
  const auto* descriptor = a.GetDescriptor();
  const auto* reflection = a.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor& field = *descriptor->field(i);
    const std::string key =
        path.empty() ? field.name() : absl::StrCat(path, ".", field.name());
    const bool both_messages =
        field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        !field.is_repeated() && reflection->HasField(a, &field) &&
        reflection->HasField(b, &field);
    if (both_messages) {
      auto difference = FirstDifference(reflection->GetMessage(a, &field),
                                        reflection->GetMessage(b, &field), key);
      if (difference.has_value()) return difference;
      continue;
    }
    const std::string left = FieldText(a, field);
    const std::string right = FieldText(b, field);
    if (left != right) {
      return absl::StrCat(key, " is ", left, ", but the job to resume has ",
                          right);
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckResumable(const v1::JobSpec& spec,
                            const v1::JobSpec& source) {
  const auto difference = FirstDifference(Core(spec), Core(source), "");
  if (!difference.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("resume: ", *difference));
}

}  // namespace lockstep
