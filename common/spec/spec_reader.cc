#include "common/spec/spec_reader.h"

#include <limits>
#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/bytes.h"
#include "common/spec/nearest_word.h"
#include "common/spec/spec_printer.h"
#include "common/spec/yaml_tree.h"
#include "common/status_macros.h"
#include "google/protobuf/duration.pb.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsKey(const FieldDescriptor& field) {
  return field.full_name() != "lockstep.v1.JobSpec.action";
}

const FieldDescriptor* FindKey(const Descriptor& type, const std::string& key) {
  const FieldDescriptor* field = type.FindFieldByName(key);
  return field != nullptr && IsKey(*field) ? field : nullptr;
}

std::string Join(const std::string& path, const std::string& key) {
  return path.empty() ? key : absl::StrCat(path, ".", key);
}

// Paths of all keys below `type` that are called `key`.
void FindElsewhere(const Descriptor& type, const std::string& path,
                   const std::string& key, std::vector<std::string>& found) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!IsKey(field)) continue;
    const std::string here = Join(path, field.name());
    if (field.name() == key) found.push_back(here);
    // Job files don't nest a message in itself, so this ends.
    if (field.message_type() != nullptr && !field.is_repeated()) {
      FindElsewhere(*field.message_type(), here, key, found);
    }
  }
}

std::string UnknownKey(const Descriptor& root, const Descriptor& type,
                       const std::string& path, const std::string& key) {
  std::vector<std::string> known;
  for (int i = 0; i < type.field_count(); ++i) {
    if (IsKey(*type.field(i))) known.push_back(type.field(i)->name());
  }
  std::string message =
      absl::StrCat("unknown key \"", absl::Utf8SafeCEscape(key), "\"",
                   path.empty() ? "" : absl::StrCat(" in ", path),
                   "; did you mean \"", NearestWord(key, known), "\"?");
  std::vector<std::string> elsewhere;
  FindElsewhere(root, "", key, elsewhere);
  if (!elsewhere.empty()) {
    absl::StrAppend(&message, " (there is ", absl::StrJoin(elsewhere, ", "),
                    ")");
  }
  return message;
}

// Fills messages from trees. Paths are for messages ("train.global_batch").
class Reader {
 public:
  // `name`: for messages. `positions`: whether they tell line and column.
  Reader(std::string name, bool positions, const Descriptor& root)
      : name_(std::move(name)), positions_(positions), root_(root) {}

  absl::Status ReadMessage(const YamlNode& node, const std::string& path,
                           Message& message) {
    if (node.kind != YamlNode::Kind::kMapping) {
      return WrongType(node, path.empty() ? "the file" : path,
                       "a mapping of keys to values");
    }
    const Descriptor& type = *message.GetDescriptor();
    std::set<std::string> seen;
    for (const auto& [key, value] : node.members) {
      const FieldDescriptor* field = FindKey(type, key.scalar);
      if (field == nullptr) {
        return Error(key, UnknownKey(root_, type, path, key.scalar));
      }
      if (!seen.insert(key.scalar).second) {
        return Error(key, absl::StrCat("duplicate key \"", key.scalar, "\"",
                                       path.empty() ? "" : " in ", path));
      }
      RETURN_IF_ERROR(
          ReadField(value, Join(path, field->name()), *field, message));
    }
    return absl::OkStatus();
  }

  absl::Status ReadField(const YamlNode& node, const std::string& path,
                         const FieldDescriptor& field, Message& message) {
    const Reflection& reflection = *message.GetReflection();
    const bool is_auto =
        field.message_type() == v1::ParallelSpec::descriptor() &&
        node.kind == YamlNode::Kind::kScalar && node.scalar == "auto";
    if (node.IsNull() || is_auto) {
      reflection.ClearField(&message, &field);
      return absl::OkStatus();
    }
    if (!field.is_repeated()) return ReadOne(node, path, field, message);
    reflection.ClearField(&message, &field);
    if (node.kind != YamlNode::Kind::kSequence) {
      return ReadOne(node, path, field, message);
    }
    for (size_t i = 0; i < node.items.size(); ++i) {
      RETURN_IF_ERROR(ReadOne(node.items[i], absl::StrCat(path, "[", i, "]"),
                              field, message));
    }
    return absl::OkStatus();
  }

 private:
  // Sets a singular field, or adds an element to a repeated one.
  absl::Status ReadOne(const YamlNode& node, const std::string& path,
                       const FieldDescriptor& field, Message& message) {
    const Reflection& reflection = *message.GetReflection();
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return ReadInteger<int64_t>(node, path, [&](int64_t number) {
          many ? reflection.AddInt64(&message, &field, number)
               : reflection.SetInt64(&message, &field, number);
        });
      case FieldDescriptor::CPPTYPE_UINT64:
        return ReadInteger<uint64_t>(node, path, [&](uint64_t number) {
          many ? reflection.AddUInt64(&message, &field, number)
               : reflection.SetUInt64(&message, &field, number);
        });
      case FieldDescriptor::CPPTYPE_INT32:
        return ReadInteger<int32_t>(node, path, [&](int32_t number) {
          many ? reflection.AddInt32(&message, &field, number)
               : reflection.SetInt32(&message, &field, number);
        });
      case FieldDescriptor::CPPTYPE_UINT32:
        return ReadInteger<uint32_t>(node, path, [&](uint32_t number) {
          many ? reflection.AddUInt32(&message, &field, number)
               : reflection.SetUInt32(&message, &field, number);
        });
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        ASSIGN_OR_RETURN(const double number, ReadNumber(node, path));
        many ? reflection.AddDouble(&message, &field, number)
             : reflection.SetDouble(&message, &field, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_FLOAT: {
        ASSIGN_OR_RETURN(const double wide, ReadNumber(node, path));
        const float number = static_cast<float>(wide);
        many ? reflection.AddFloat(&message, &field, number)
             : reflection.SetFloat(&message, &field, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        ASSIGN_OR_RETURN(const bool truth, ReadBool(node, path));
        many ? reflection.AddBool(&message, &field, truth)
             : reflection.SetBool(&message, &field, truth);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        ASSIGN_OR_RETURN(const int number,
                         ReadEnum(node, path, *field.enum_type()));
        many ? reflection.AddEnumValue(&message, &field, number)
             : reflection.SetEnumValue(&message, &field, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        ASSIGN_OR_RETURN(std::string text, ReadString(node, path, field));
        many ? reflection.AddString(&message, &field, std::move(text))
             : reflection.SetString(&message, &field, std::move(text));
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return ReadSubMessage(
            node, path,
            many ? *reflection.AddMessage(&message, &field)
                 : *reflection.MutableMessage(&message, &field));
    }
    return Error(node, absl::StrCat(path, " has a type that can't be read"));
  }

  // A message, or the one scalar that it may be written as.
  absl::Status ReadSubMessage(const YamlNode& node, const std::string& path,
                              Message& message) {
    const Descriptor* type = message.GetDescriptor();
    if (type == google::protobuf::Duration::descriptor()) {
      return ReadDuration(node, path, message);
    }
    if (node.kind == YamlNode::Kind::kScalar) {
      if (type == v1::ByteSize::descriptor()) {
        const auto bytes = ParseBytes(node.scalar);
        if (!bytes.ok()) {
          return Error(node,
                       absl::StrCat(path, ": ", bytes.status().message()));
        }
        static_cast<v1::ByteSize&>(message).set_bytes(*bytes);
        return absl::OkStatus();
      }
      if (type == v1::DeviceRange::descriptor()) {
        auto& range = static_cast<v1::DeviceRange&>(message);
        return ReadInteger<int64_t>(node, path, [&](int64_t number) {
          range.set_min(number);
          range.set_max(number);
        });
      }
    }
    return ReadMessage(node, path, message);
  }

  absl::Status ReadDuration(const YamlNode& node, const std::string& path,
                            Message& message) {
    if (node.kind != YamlNode::Kind::kScalar) {
      return WrongType(node, path, "a time like 15s or 2m");
    }
    const auto time = ParseDuration(node.scalar);
    if (!time.ok()) {
      return Error(node, absl::StrCat(path, ": ", time.status().message()));
    }
    // A duration of the protos holds 10,000 years.
    constexpr int64_t kMostSeconds = 315'576'000'000;
    absl::Duration rest;
    const int64_t seconds = absl::IDivDuration(*time, absl::Seconds(1), &rest);
    if (seconds > kMostSeconds) {
      return Error(node, absl::StrCat(path, " is ", node.scalar,
                                      ", want at most 10000 years"));
    }
    auto& duration = static_cast<google::protobuf::Duration&>(message);
    duration.set_seconds(seconds);
    duration.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
    return absl::OkStatus();
  }

  // 64-bit integers may be quoted, as proto JSON writes them.
  template <typename Integer, typename Set>
  absl::Status ReadInteger(const YamlNode& node, const std::string& path,
                           const Set& set) {
    using Limits = std::numeric_limits<Integer>;
    const std::string want =
        absl::StrCat("an integer, ", Limits::min(), " to ", Limits::max());
    if (node.kind != YamlNode::Kind::kScalar) {
      return WrongType(node, path, want);
    }
    const size_t digits = node.scalar.empty() || node.scalar[0] != '-' ? 0 : 1;
    Integer number = 0;
    if (digits == node.scalar.size() ||
        node.scalar.find_first_not_of("0123456789", digits) !=
            std::string::npos ||
        !absl::SimpleAtoi(node.scalar, &number)) {
      return WrongType(node, path, want);
    }
    set(number);
    return absl::OkStatus();
  }

  absl::StatusOr<double> ReadNumber(const YamlNode& node,
                                    const std::string& path) {
    double number = 0.0;
    if (node.kind == YamlNode::Kind::kScalar) {
      if (absl::SimpleAtod(node.scalar, &number)) return number;
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (node.scalar == ".inf") return kInfinity;
      if (node.scalar == "-.inf") return -kInfinity;
      if (node.scalar == ".nan") {
        return std::numeric_limits<double>::quiet_NaN();
      }
    }
    return WrongType(node, path, "a number");
  }

  absl::StatusOr<bool> ReadBool(const YamlNode& node, const std::string& path) {
    if (node.kind == YamlNode::Kind::kScalar && node.plain) {
      if (node.scalar == "true") return true;
      if (node.scalar == "false") return false;
    }
    return WrongType(node, path, "true or false");
  }

  absl::StatusOr<int> ReadEnum(const YamlNode& node, const std::string& path,
                               const EnumDescriptor& type) {
    std::vector<std::string> words;
    for (int i = 0; i < type.value_count(); ++i) {
      if (type.value(i)->number() == 0) continue;  // "unspecified"
      words.push_back(EnumWord(*type.value(i)));
      if (node.kind == YamlNode::Kind::kScalar && node.scalar == words.back()) {
        return type.value(i)->number();
      }
    }
    return WrongType(node, path,
                     absl::StrCat("one of ", absl::StrJoin(words, ", ")));
  }

  absl::StatusOr<std::string> ReadString(const YamlNode& node,
                                         const std::string& path,
                                         const FieldDescriptor& field) {
    if (node.kind != YamlNode::Kind::kScalar) {
      return WrongType(node, path, "a text");
    }
    if (field.type() != FieldDescriptor::TYPE_BYTES) return node.scalar;
    std::string bytes;
    if (!absl::Base64Unescape(node.scalar, &bytes)) {
      return WrongType(node, path, "bytes in base64");
    }
    return bytes;
  }

  absl::Status WrongType(const YamlNode& node, const std::string& path,
                         const std::string& want) {
    std::string got;
    switch (node.kind) {
      case YamlNode::Kind::kScalar:
        got =
            node.IsNull()
                ? std::string("empty")
                : absl::StrCat("\"", absl::Utf8SafeCEscape(node.scalar), "\"");
        break;
      case YamlNode::Kind::kSequence:
        got = "a list";
        break;
      case YamlNode::Kind::kMapping:
        got = "a mapping";
        break;
    }
    return Error(node, absl::StrCat(path, " is ", got, ", want ", want));
  }

  absl::Status Error(const YamlNode& node, const std::string& what) {
    const std::string where =
        positions_ ? absl::StrCat(name_, ":", node.line, ":", node.column)
                   : name_;
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  }

  const std::string name_;
  const bool positions_;
  const Descriptor& root_;
};

}  // namespace

absl::Status ReadSpecText(std::string_view text, std::string_view name,
                          Message& message) {
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, name));
  if (root.IsNull()) return absl::OkStatus();
  Reader reader(std::string(name), true, *message.GetDescriptor());
  return reader.ReadMessage(root, "", message);
}

absl::Status SetSpecField(std::string_view assignment, Message& message) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", std::string(assignment),
                     ": want path.to.key=VALUE, train.steps=50 say"));
  }
  const std::string path(assignment.substr(0, equals));
  const std::string name = absl::StrCat("--set ", path);
  ASSIGN_OR_RETURN(const YamlNode value,
                   ParseYaml(assignment.substr(equals + 1), name));
  const std::vector<std::string> keys = absl::StrSplit(path, '.');
  const Descriptor& root = *message.GetDescriptor();
  // The schema is walked before the message is touched.
  const Descriptor* type = &root;
  std::vector<const FieldDescriptor*> fields;
  std::string so_far;
  for (const std::string& key : keys) {
    if (type == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", so_far, " has no keys of its own"));
    }
    const FieldDescriptor* field = FindKey(*type, key);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", UnknownKey(root, *type, so_far, key)));
    }
    fields.push_back(field);
    so_far = Join(so_far, key);
    type = field->is_repeated() || field->message_type() ==
                                       google::protobuf::Duration::descriptor()
               ? nullptr
               : field->message_type();
  }
  Message* target = &message;
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    target = target->GetReflection()->MutableMessage(target, fields[i]);
  }
  Reader reader(name, false, root);
  return reader.ReadField(value, path, *fields.back(), *target);
}

}  // namespace lockstep
