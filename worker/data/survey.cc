#include "worker/data/survey.h"

#include "common/utf8.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

// More than any classifier has: the wrong column was named.
constexpr size_t kMostLabels = 65'536;
constexpr size_t kMostLabelBytes = 1024;

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t character = Utf8Length(text);
    if (character == 0) return false;
    text.remove_prefix(character);
  }
  return true;
}

}  // namespace

absl::Status Survey::Begin(const DocumentOrigin& origin,
                           std::string_view label) {
  if (!collect_labels_ || labels_.contains(label)) return absl::OkStatus();
  if (label.size() > kMostLabelBytes || !IsUtf8(label)) {
    return absl::InvalidArgumentError(
        StrCat(origin.Prefix(), "a label of ", label.size(),
               " bytes; want UTF-8 of at most ", kMostLabelBytes));
  }
  if (labels_.size() == kMostLabels) {
    return absl::InvalidArgumentError(
        StrCat(origin.Prefix(), "more than ", kMostLabels,
               " different labels: is this the right column?"));
  }
  labels_.emplace(label);
  return absl::OkStatus();
}

absl::Status Survey::Text(std::string_view piece) {
  return sentences_ == nullptr ? absl::OkStatus() : sentences_->Add(piece);
}

absl::Status Survey::End() {
  return sentences_ == nullptr ? absl::OkStatus() : sentences_->EndDocument();
}

}  // namespace lockstep
