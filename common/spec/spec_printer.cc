#include "common/spec/spec_printer.h"

#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/bytes.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/time_util.h"
#include "lockstep/v1/job.pb.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Value = nlohmann::ordered_json;

enum class Target { kJson, kYaml };

Value FromMessage(const Message& message, Target target);

Value FromDouble(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number;
}

template <typename Integer>
Value FromWideInteger(Integer number, Target target) {
  if (target == Target::kJson) return absl::StrCat(number);
  return number;
}

// Value of a singular field, or of element `index` of a repeated one.
Value FromField(const Message& message, const FieldDescriptor* field, int index,
                Target target) {
  const Reflection& get = *message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? get.GetRepeatedInt32(message, field, index)
                  : get.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return many ? get.GetRepeatedUInt32(message, field, index)
                  : get.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return FromWideInteger(many ? get.GetRepeatedInt64(message, field, index)
                                  : get.GetInt64(message, field),
                             target);
    case FieldDescriptor::CPPTYPE_UINT64:
      return FromWideInteger(many ? get.GetRepeatedUInt64(message, field, index)
                                  : get.GetUInt64(message, field),
                             target);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return FromDouble(many ? get.GetRepeatedDouble(message, field, index)
                             : get.GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return FromDouble(many ? get.GetRepeatedFloat(message, field, index)
                             : get.GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return many ? get.GetRepeatedBool(message, field, index)
                  : get.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = many ? get.GetRepeatedEnumValue(message, field, index)
                              : get.GetEnumValue(message, field);
      const EnumValueDescriptor* value =
          field->enum_type()->FindValueByNumber(number);
      if (value == nullptr) return number;
      return EnumWord(*value);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text =
          many ? get.GetRepeatedString(message, field, index)
               : get.GetString(message, field);
      if (field->type() == FieldDescriptor::TYPE_BYTES) {
        return absl::Base64Escape(text);
      }
      return text;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return FromMessage(many ? get.GetRepeatedMessage(message, field, index)
                              : get.GetMessage(message, field),
                         target);
  }
  return nullptr;
}

bool IsPrinted(const Message& message, const FieldDescriptor* field) {
  if (field->is_repeated()) return true;
  const Reflection& get = *message.GetReflection();
  if (field->has_presence()) return get.HasField(message, field);
  // An enum's number 0 is "unspecified": there is no value.
  return field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM ||
         get.GetEnumValue(message, field) != 0;
}

Value FromPrintedField(const Message& message, const FieldDescriptor* field,
                       Target target) {
  if (!field->is_repeated()) return FromField(message, field, 0, target);
  Value list = Value::array();
  const int size = message.GetReflection()->FieldSize(message, field);
  for (int i = 0; i < size; ++i) {
    list.push_back(FromField(message, field, i, target));
  }
  return list;
}

Value FromMessage(const Message& message, Target target) {
  const auto* descriptor = message.GetDescriptor();
  using google::protobuf::util::TimeUtil;
  if (descriptor == google::protobuf::Duration::descriptor()) {
    return TimeUtil::ToString(
        static_cast<const google::protobuf::Duration&>(message));
  }
  if (descriptor == google::protobuf::Timestamp::descriptor()) {
    return TimeUtil::ToString(
        static_cast<const google::protobuf::Timestamp&>(message));
  }
  if (target == Target::kYaml) {
    if (descriptor == v1::ByteSize::descriptor()) {
      return FormatBytesExact(
          static_cast<const v1::ByteSize&>(message).bytes());
    }
    if (descriptor == v1::DeviceRange::descriptor()) {
      const auto& range = static_cast<const v1::DeviceRange&>(message);
      if (range.min() == range.max()) return range.min();
    }
  }
  Value object = Value::object();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (!IsPrinted(message, field)) continue;
    object[field->name()] = FromPrintedField(message, field, target);
  }
  return object;
}

std::string Dump(const Value& value, int indent) {
  // Text that isn't UTF-8 gets replacement characters in place of an exception.
  return value.dump(indent, ' ', false, Value::error_handler_t::replace);
}

// Whether YAML reads `text` back as this string when it is not quoted.
bool IsPlainYaml(const std::string& text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' &&
        c != '.' && c != '/' && c != '-') {
      return false;
    }
  }
  if (text[0] == '-' || text[0] == '.') return false;
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return false;
  // A number in another base, or a date.
  if (absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
      (text.size() < 2 || absl::StrContains("xob", text.substr(1, 1)) ||
       !absl::ascii_isalpha(static_cast<unsigned char>(text.back())))) {
    return false;
  }
  for (const char* word :
       {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}) {
    if (absl::EqualsIgnoreCase(text, word)) return false;
  }
  return true;
}

std::string YamlScalar(const Value& value) {
  if (value.is_string() && IsPlainYaml(value.get_ref<const std::string&>())) {
    return value.get<std::string>();
  }
  // A JSON string is a double-quoted YAML string.
  return Dump(value, -1);
}

void AppendYaml(const Value& value, int indent, std::string& out);

// `value` after "key:" or "-": on the same line if it is a scalar.
void AppendYamlAfter(const Value& value, int indent, std::string& out) {
  const bool block = value.is_structured() && !value.empty() &&
                     (value.is_object() || value.front().is_structured());
  if (block) {
    absl::StrAppend(&out, "\n");
    AppendYaml(value, indent, out);
  } else if (value.is_array()) {
    std::vector<std::string> items;
    std::string line;
    for (const Value& item : value) {
      absl::StrAppend(&line, line.empty() ? "" : ", ", YamlScalar(item));
    }
    absl::StrAppend(&out, " [", line, "]\n");
  } else if (value.is_object()) {
    absl::StrAppend(&out, " {}\n");
  } else {
    absl::StrAppend(&out, " ", YamlScalar(value), "\n");
  }
}

void AppendYaml(const Value& value, int indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (value.is_array()) {
    for (const Value& item : value) {
      const size_t begin = out.size();
      AppendYamlAfter(item, indent + 2, out);
      if (out[begin] == '\n') {
        // A block: its first line's margin makes room for the dash.
        out.replace(begin, 1 + margin.size() + 1, margin + "-");
      } else {
        out.insert(begin, margin + "-");
      }
    }
    return;
  }
  for (const auto& [key, member] : value.items()) {
    absl::StrAppend(&out, margin, key, ":");
    AppendYamlAfter(member, indent + 2, out);
  }
}

}  // namespace

std::string ToJson(const Message& message, JsonStyle style) {
  return Dump(FromMessage(message, Target::kJson),
              style == JsonStyle::kLine ? -1 : 2);
}

std::string ToYaml(const Message& message) {
  return JsonToYaml(FromMessage(message, Target::kYaml));
}

std::string JsonToYaml(const Value& value) {
  if (!value.is_structured()) return YamlScalar(value) + "\n";
  if (value.empty()) return value.is_array() ? "[]\n" : "{}\n";
  std::string out;
  AppendYaml(value, 0, out);
  return out;
}

std::string FieldText(const Message& message, const FieldDescriptor& field) {
  if (!IsPrinted(message, &field)) return "absent";
  return Dump(FromPrintedField(message, &field, Target::kJson), -1);
}

std::string EnumWord(const EnumValueDescriptor& value) {
  // JOB_STATE_PENDING of enum JobState: the prefix is what number 0's name,
  // JOB_STATE_UNSPECIFIED, has before its last word.
  const std::string& zero = value.type()->value(0)->name();
  constexpr absl::string_view kZero = "UNSPECIFIED";
  absl::string_view word = value.name();
  if (absl::EndsWith(zero, kZero)) {
    word.remove_prefix(std::min(word.size(), zero.size() - kZero.size()));
  }
  if (value.type()->name() == "JobState") return std::string(word);
  return absl::AsciiStrToLower(word);
}

}  // namespace lockstep
