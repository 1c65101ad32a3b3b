#include "worker/checkpoint/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
// Some 100,000 tensors; parsing it takes several times as much memory.
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
constexpr uint64_t kAlignment = 64;
constexpr int64_t kMaxElements = int64_t{1} << 60;
constexpr char kMetadataKey[] = "__metadata__";

std::string EncodeLength(uint64_t length) {
  std::string bytes(kLengthBytes, '\0');
  for (uint64_t i = 0; i < kLengthBytes; ++i) {
    bytes[i] = static_cast<char>(length >> (8 * i));
  }
  return bytes;
}

uint64_t DecodeLength(const unsigned char* bytes) {
  uint64_t length = 0;
  for (uint64_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{bytes[i]} << (8 * i);
  }
  return length;
}

// The array `name` of `object` as non-negative integers below 2^63; nullopt if
// it is anything else.
std::optional<std::vector<int64_t>> Integers(const Json& object,
                                             const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return std::nullopt;
  std::vector<int64_t> values;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned() ||
        value.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return std::nullopt;
    }
    values.push_back(static_cast<int64_t>(value.get<uint64_t>()));
  }
  return values;
}

// The description `value` of one tensor in a file whose data has `data_bytes`
// from byte `data_begin` on; an error is the rest of a sentence on the key.
absl::StatusOr<SafetensorsTensor> ParseTensor(const Json& value,
                                              uint64_t data_begin,
                                              uint64_t data_bytes) {
  if (!value.is_object()) return absl::DataLossError("is not an object");
  const auto dtype = value.find("dtype");
  if (dtype == value.end() || !dtype->is_string() ||
      dtype->get_ref<const std::string&>() != "F32") {
    return absl::DataLossError("has another dtype than F32");
  }
  const auto shape = Integers(value, "shape");
  if (!shape.has_value()) return absl::DataLossError("has no proper shape");
  const auto offsets = Integers(value, "data_offsets");
  if (!offsets.has_value() || offsets->size() != 2) {
    return absl::DataLossError("has no proper data_offsets");
  }
  const uint64_t begin = (*offsets)[0];
  const uint64_t end = (*offsets)[1];
  if (begin > end || end > data_bytes) {
    return absl::DataLossError(
        absl::StrCat("has bytes ", begin, " to ", end, " of ", data_bytes));
  }
  const std::optional<int64_t> elements = ElementsOf(*shape);
  if (!elements.has_value() ||
      static_cast<uint64_t>(*elements) * sizeof(float) != end - begin) {
    return absl::DataLossError(
        absl::StrCat("has ", end - begin, " bytes, which don't fit its shape"));
  }
  return SafetensorsTensor{*shape, data_begin + begin, end - begin};
}

}  // namespace

std::optional<int64_t> ElementsOf(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return 0;
  }
  for (int64_t extent : shape) {
    if (extent > kMaxElements / elements) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

std::string SafetensorsHeader(const std::vector<SafetensorsEntry>& entries) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header[kMetadataKey] = {{"format", "lockstep"}};
  int64_t begin = 0;
  for (const SafetensorsEntry& entry : entries) {
    const int64_t end =
        begin + entry.elements * static_cast<int64_t>(sizeof(float));
    header[entry.key] = {{"dtype", "F32"},
                         {"shape", entry.shape},
                         {"data_offsets", {begin, end}}};
    begin = end;
  }
  // Names that are no UTF-8 are mended, not thrown at the caller.
  std::string text = header.dump(-1, ' ', /*ensure_ascii=*/false,
                                 Json::error_handler_t::replace);
  const uint64_t total = kLengthBytes + text.size();
  text.append((kAlignment - total % kAlignment) % kAlignment, ' ');
  return EncodeLength(text.size()) + text;
}

absl::StatusOr<std::map<std::string, SafetensorsTensor>> ReadSafetensorsHeader(
    const FileReader& file) {
  const auto error = [&](const auto&... parts) {
    return absl::DataLossError(absl::StrCat(file.path(), ": ", parts...));
  };
  if (file.bytes() < kLengthBytes) {
    return error("has ", file.bytes(), " bytes, too few for a header");
  }
  unsigned char length_bytes[kLengthBytes];
  RETURN_IF_ERROR(file.Read(0, length_bytes, kLengthBytes));
  const uint64_t length = DecodeLength(length_bytes);
  if (length > file.bytes() - kLengthBytes || length > kMaxHeaderBytes) {
    return error("header length is ", length, ", want at most ",
                 std::min(file.bytes() - kLengthBytes, kMaxHeaderBytes));
  }
  std::string text(length, '\0');
  RETURN_IF_ERROR(file.Read(kLengthBytes, text.data(), length));

  std::set<std::string> keys;
  std::string repeated;
  const Json::parser_callback_t collect_keys =
      [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth == 1 && event == Json::parse_event_t::key &&
            !keys.insert(parsed.get_ref<const std::string&>()).second) {
          repeated = parsed.get_ref<const std::string&>();
        }
        return true;
      };
  const Json header =
      Json::parse(text, collect_keys, /*allow_exceptions=*/false);
  if (!header.is_object()) return error("header is not a JSON object");
  if (!repeated.empty()) return error("key \"", repeated, "\" is repeated");

  const uint64_t data_begin = kLengthBytes + length;
  const uint64_t data_bytes = file.bytes() - data_begin;
  std::map<std::string, SafetensorsTensor> tensors;
  for (const auto& [key, value] : header.items()) {
    if (key == kMetadataKey) continue;
    absl::StatusOr<SafetensorsTensor> tensor =
        ParseTensor(value, data_begin, data_bytes);
    if (!tensor.ok()) {
      return error("tensor \"", key, "\" ",
                   std::string(tensor.status().message()));
    }
    tensors.emplace(key, *std::move(tensor));
  }

  // In order of their bytes, each must begin where the one before ends.
  std::vector<const std::pair<const std::string, SafetensorsTensor>*> ordered;
  for (const auto& tensor : tensors) ordered.push_back(&tensor);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return std::make_pair(a->second.begin_byte, a->second.bytes) <
           std::make_pair(b->second.begin_byte, b->second.bytes);
  });
  uint64_t next = data_begin;
  for (const auto* tensor : ordered) {
    if (tensor->second.begin_byte != next) {
      return error("tensor \"", tensor->first, "\" begins at byte ",
                   tensor->second.begin_byte, ", want ", next,
                   tensor->second.begin_byte < next ? " (overlap)" : " (gap)");
    }
    next += tensor->second.bytes;
  }
  if (next != file.bytes()) {
    return error("tensors end at byte ", next, " of ", file.bytes());
  }
  return tensors;
}

}  // namespace lockstep
