#include "cli/field_docs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/embedded_protoset.h"
#include "common/log.h"
#include "common/spec/nearest_word.h"
#include "common/spec/spec_printer.h"
#include "google/protobuf/descriptor.pb.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

constexpr char kRoot[] = "jobspec";
constexpr size_t kTextWidth = 76;

// The comment in front of a thing, as one paragraph.
template <typename D>
std::string Comment(const D& thing) {
  google::protobuf::SourceLocation location;
  if (!thing.GetSourceLocation(&location)) return "";
  const std::vector<std::string> words = absl::StrSplit(
      location.leading_comments, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

// A comment's text and what follows "Default:" in it.
struct Doc {
  std::string text;
  std::string default_text;
};

Doc DocOf(const FieldDescriptor& field) {
  Doc doc;
  doc.text = Comment(field);
  constexpr absl::string_view kDefault = "Default:";
  const size_t at = doc.text.find(std::string(kDefault));
  if (at == std::string::npos) return doc;
  doc.default_text = std::string(
      absl::StripAsciiWhitespace(doc.text.substr(at + kDefault.size())));
  doc.text = std::string(absl::StripAsciiWhitespace(doc.text.substr(0, at)));
  if (absl::EndsWith(doc.default_text, ".")) doc.default_text.pop_back();
  return doc;
}

// How a value of the field is written.
std::string TypeText(const FieldDescriptor& field) {
  std::string text;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      text = "integer";
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      text = "number";
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      text = "true or false";
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      text = "word";
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      text = "text";
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const std::string& type = field.message_type()->full_name();
      if (type == "lockstep.v1.ByteSize") {
        text = "size, as 512MiB";
      } else if (type == "google.protobuf.Duration") {
        text = "time, as 15s";
      } else if (type == "lockstep.v1.DeviceRange") {
        text = "integer, or keys";
      } else if (type == "lockstep.v1.ParallelSpec") {
        text = "auto, or keys";
      } else {
        text = "keys";
      }
      break;
    }
  }
  return field.is_repeated() ? absl::StrCat(text, ", or a list") : text;
}

// Breaks at spaces; each line begins with `margin`.
std::string Wrap(const std::string& text, const std::string& margin) {
  std::string out;
  std::string line;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(text, ' ', absl::SkipEmpty()))) {
    if (!line.empty() &&
        margin.size() + line.size() + 1 + word.size() > kTextWidth) {
      absl::StrAppend(&out, margin, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  if (!line.empty()) absl::StrAppend(&out, margin, line, "\n");
  return out;
}

bool IsKey(const FieldDescriptor& field) {
  return field.full_name() != "lockstep.v1.JobSpec.action";
}

// Messages that are written as keys; the others are single values.
bool HasKeys(const FieldDescriptor& field) {
  return field.message_type() != nullptr &&
         field.message_type()->full_name() != "google.protobuf.Duration" &&
         field.message_type()->full_name() != "lockstep.v1.ByteSize";
}

std::string KeysText(const Descriptor& type) {
  std::string out = "\nKeys:\n";
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!IsKey(field)) continue;
    const Doc doc = DocOf(field);
    absl::StrAppend(&out, "  ", field.name(), "  (", TypeText(field), ")\n");
    std::string text = doc.text;
    if (!doc.default_text.empty()) {
      absl::StrAppend(&text, " Default: ", doc.default_text, ".");
    }
    absl::StrAppend(&out, Wrap(text, "      "));
  }
  return out;
}

std::string WordsText(const EnumDescriptor& type) {
  std::string out = "\nWords:\n";
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() == 0) continue;
    absl::StrAppend(&out, "  ", EnumWord(*type.value(i)), "\n",
                    Wrap(Comment(*type.value(i)), "      "));
  }
  return out;
}

std::string FieldText(const std::string& path, const FieldDescriptor& field) {
  const Doc doc = DocOf(field);
  std::string out =
      absl::StrCat(path, "  (", TypeText(field), ")\n\n", Wrap(doc.text, ""));
  const std::string type_text =
      HasKeys(field) ? Comment(*field.message_type()) : "";
  if (!type_text.empty() && type_text != doc.text) {
    absl::StrAppend(&out, Wrap(type_text, ""));
  }
  if (!doc.default_text.empty()) {
    absl::StrAppend(&out, "\n", Wrap("Default: " + doc.default_text, ""));
  }
  if (field.enum_type() != nullptr) {
    absl::StrAppend(&out, WordsText(*field.enum_type()));
  }
  if (HasKeys(field)) absl::StrAppend(&out, KeysText(*field.message_type()));
  return out;
}

}  // namespace

FieldDocs::FieldDocs() {
  google::protobuf::FileDescriptorSet files;
  const std::string_view bytes = EmbeddedProtoset();
  CHECK(files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      << "the embedded descriptor set can't be read";
  // protoc puts each file behind those that it imports.
  for (const auto& file : files.file()) {
    CHECK(pool_.BuildFile(file) != nullptr) << file.name();
  }
  root_ = pool_.FindMessageTypeByName("lockstep.v1.JobSpec");
  CHECK(root_ != nullptr);
}

absl::StatusOr<std::string> FieldDocs::Explain(const std::string& path) const {
  std::vector<std::string> keys =
      absl::StrSplit(absl::AsciiStrToLower(path), '.', absl::SkipEmpty());
  if (!keys.empty() && keys.front() == kRoot) keys.erase(keys.begin());
  if (keys.empty()) {
    return absl::StrCat(kRoot, "\n\n", Wrap(Comment(*root_), ""),
                        KeysText(*root_));
  }
  const Descriptor* type = root_;
  const FieldDescriptor* field = nullptr;
  std::string so_far;
  for (const std::string& key : keys) {
    std::vector<std::string> known;
    for (int i = 0; type != nullptr && i < type->field_count(); ++i) {
      if (IsKey(*type->field(i))) known.push_back(type->field(i)->name());
    }
    if (known.empty()) {
      return absl::NotFoundError(
          absl::StrCat(so_far, " has no keys of its own"));
    }
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return absl::NotFoundError(
          absl::StrCat("there is no key \"", key, "\"",
                       so_far.empty() ? "" : absl::StrCat(" in ", so_far),
                       "; did you mean \"", so_far, so_far.empty() ? "" : ".",
                       NearestWord(key, known), "\"?"));
    }
    field = type->FindFieldByName(key);
    so_far = so_far.empty() ? key : absl::StrCat(so_far, ".", key);
    type = HasKeys(*field) ? field->message_type() : nullptr;
  }
  return FieldText(so_far, *field);
}

}  // namespace lockstep
