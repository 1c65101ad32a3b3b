#include "common/spec/job_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/spec/spec_checks.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMostNameBytes = 63;

absl::Status CheckName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("name is missing");
  if (name.size() > kMostNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("name has ", name.size(),
                                                   " characters, want at most ",
                                                   kMostNameBytes));
  }
  const bool clean = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
           c == '_' || c == '.';
  });
  if (!clean || !absl::ascii_isalnum(static_cast<unsigned char>(name[0]))) {
    return absl::InvalidArgumentError(
        absl::StrCat("name is \"", absl::CEscape(name),
                     "\", want letters, digits, '-', '_' and '.', beginning "
                     "with a letter or digit"));
  }
  return absl::OkStatus();
}

// The wire can carry numbers that no enum value has.
absl::Status CheckEnums(const Message& message, const std::string& path) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string key =
        path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
    // No repeated field of a job file holds messages or enums.
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      RETURN_IF_ERROR(CheckEnums(reflection->GetMessage(message, field), key));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      const int number = reflection->GetEnumValue(message, field);
      if (field->enum_type()->FindValueByNumber(number) == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat(key, " is ", number, ", which this version of ",
                         "Lockstep does not know"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateJobSpec(const v1::JobSpec& spec) {
  RETURN_IF_ERROR(CheckEnums(spec, ""));
  RETURN_IF_ERROR(CheckName(spec.name()));
  if (spec.has_action()) {
    RETURN_IF_ERROR(spec_internal::CheckAction(spec));
    // The rest may still have to be copied from the source job.
    if (!spec.has_model()) return spec_internal::CheckBuilt(spec);
  }
  RETURN_IF_ERROR(spec_internal::CheckModel(spec));
  RETURN_IF_ERROR(spec_internal::CheckData(spec));
  RETURN_IF_ERROR(spec_internal::CheckTrain(spec.train()));
  RETURN_IF_ERROR(spec_internal::CheckPlacement(spec));
  RETURN_IF_ERROR(spec_internal::CheckActivations(spec));
  RETURN_IF_ERROR(spec_internal::CheckBuilt(spec));
  return spec_internal::CheckWorldSize(spec);
}

std::vector<std::string> SpecWarnings(const v1::JobSpec& spec) {
  std::vector<std::string> warnings;
  if (spec.restart().has_max_attempts()) {
    warnings.push_back(
        "restart.max_attempts: accepted, but not built yet; a failed attempt "
        "is not started again");
  }
  if (spec.train().has_evaluate_every() && !spec.data().has_validation()) {
    warnings.push_back(
        "train.evaluate_every: there is no data.validation to evaluate on");
  }
  return warnings;
}

DType ComputeDType(v1::Precision precision) {
  switch (precision) {
    case v1::PRECISION_BF16:
      return DType::kBFloat16;
    case v1::PRECISION_UNSPECIFIED:
    case v1::PRECISION_FP32:
    case v1::Precision_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Precision_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return DType::kFloat32;
}

}  // namespace lockstep
