// The data section of a job file.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/spec/spec_checks.h"
#include "common/spec/spec_printer.h"
#include "common/status_macros.h"

namespace lockstep::spec_internal {
namespace {

constexpr int64_t kMostPathBytes = 4096;
constexpr int kMostPaths = 10'000;

std::string WordOf(v1::DataFormat format) {
  return EnumWord(*v1::DataFormat_descriptor()->FindValueByNumber(format));
}

absl::Status CheckPath(absl::string_view key, const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(key, " is empty"));
  }
  if (path.size() > kMostPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        key, " has ", path.size(), " bytes, want at most ", kMostPathBytes));
  }
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(key, " has a zero byte"));
  }
  return absl::OkStatus();
}

absl::Status CheckTokenizer(const v1::JobSpec& spec, v1::DataFormat format) {
  const v1::TokenizerSpec& tokenizer = spec.data().tokenizer();
  if (spec.data().has_tokenizer() && format == v1::DATA_FORMAT_TOKENS) {
    return absl::InvalidArgumentError(
        "data.tokenizer is given, but the data are token ids already");
  }
  if (!tokenizer.path().empty()) {
    RETURN_IF_ERROR(CheckPath("data.tokenizer.path", tokenizer.path()));
  }
  switch (tokenizer.kind()) {
    case v1::TOKENIZER_KIND_UNSPECIFIED:
    case v1::TOKENIZER_KIND_BYTES:
      RETURN_IF_ERROR(CheckNotOf(tokenizer.has_vocabulary(),
                                 "data.tokenizer.vocabulary", "sentencepiece",
                                 "bytes"));
      return CheckNotOf(!tokenizer.path().empty(), "data.tokenizer.path",
                        "sentencepiece and huggingface", "bytes");
    case v1::TOKENIZER_KIND_SENTENCEPIECE:
      if (tokenizer.has_vocabulary()) {
        if (!tokenizer.path().empty()) {
          return absl::InvalidArgumentError(
              "data.tokenizer.vocabulary is of a tokenizer to be trained, but "
              "data.tokenizer.path names a trained one");
        }
        // 256 byte pieces, the end and unknown tokens, and at least one more.
        return CheckRange("data.tokenizer.vocabulary", tokenizer.vocabulary(),
                          260, 1'000'000);
      }
      if (tokenizer.path().empty() && !spec.model().has_vocabulary()) {
        return absl::InvalidArgumentError(
            "data.tokenizer needs vocabulary (to train one) or path (to use a "
            "trained one)");
      }
      return absl::OkStatus();
    case v1::TOKENIZER_KIND_HUGGINGFACE:
    case v1::TokenizerKind_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::TokenizerKind_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return absl::OkStatus();
}

absl::Status CheckValidation(const v1::JobSpec& spec) {
  const v1::DataSource& validation = spec.data().validation();
  if (!validation.has_fraction()) {
    return CheckSource("data.validation", validation, spec.task());
  }
  if (validation.path_size() > 0) {
    return absl::InvalidArgumentError(
        "data.validation has both path and fraction, want one");
  }
  // The comparison is written so that NaN fails it.
  if (!(validation.fraction() > 0.0 && validation.fraction() < 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.validation.fraction is ", validation.fraction(),
                     ", want more than 0 and less than 1"));
  }
  if (validation.format() != v1::DATA_FORMAT_UNSPECIFIED ||
      !validation.text().empty() || !validation.label().empty() ||
      validation.dtype() != v1::TOKEN_DTYPE_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        "data.validation.fraction takes rows of data.train, so format, text, "
        "label and dtype belong there");
  }
  return absl::OkStatus();
}

}  // namespace

v1::DataFormat FormatOf(const v1::DataSource& source) {
  if (source.format() != v1::DATA_FORMAT_UNSPECIFIED) return source.format();
  v1::DataFormat format = v1::DATA_FORMAT_UNSPECIFIED;
  for (const std::string& path : source.path()) {
    v1::DataFormat one = v1::DATA_FORMAT_UNSPECIFIED;
    if (absl::EndsWith(path, ".txt")) one = v1::DATA_FORMAT_TEXT;
    if (absl::EndsWith(path, ".jsonl")) one = v1::DATA_FORMAT_JSONL;
    if (absl::EndsWith(path, ".csv")) one = v1::DATA_FORMAT_CSV;
    if (absl::EndsWith(path, ".bin")) one = v1::DATA_FORMAT_TOKENS;
    if (format != v1::DATA_FORMAT_UNSPECIFIED && one != format) {
      return v1::DATA_FORMAT_UNSPECIFIED;
    }
    format = one;
  }
  return format;
}

absl::Status CheckSource(absl::string_view key, const v1::DataSource& source,
                         v1::Task task) {
  if (source.path_size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(key, ".path is missing"));
  }
  if (source.path_size() > kMostPaths) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ".path has ", source.path_size(),
                     " entries, want at most ", kMostPaths));
  }
  for (int i = 0; i < source.path_size(); ++i) {
    RETURN_IF_ERROR(CheckPath(source.path_size() == 1
                                  ? absl::StrCat(key, ".path")
                                  : absl::StrCat(key, ".path[", i, "]"),
                              source.path(i)));
  }
  const v1::DataFormat format = FormatOf(source);
  if (format == v1::DATA_FORMAT_UNSPECIFIED) return absl::OkStatus();
  const std::string word = WordOf(format);
  const bool rows =
      format == v1::DATA_FORMAT_JSONL || format == v1::DATA_FORMAT_CSV;
  RETURN_IF_ERROR(CheckNotOf(!rows && !source.text().empty(),
                             absl::StrCat(key, ".text"), "jsonl and csv",
                             word));
  RETURN_IF_ERROR(CheckNotOf(!rows && !source.label().empty(),
                             absl::StrCat(key, ".label"), "jsonl and csv",
                             word));
  RETURN_IF_ERROR(CheckNotOf(format != v1::DATA_FORMAT_TOKENS &&
                                 source.dtype() != v1::TOKEN_DTYPE_UNSPECIFIED,
                             absl::StrCat(key, ".dtype"), "tokens", word));
  if (task == v1::TASK_CLASSIFICATION && !rows) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ".format is ", word,
                     ", which has no labels; classification wants jsonl or "
                     "csv"));
  }
  return absl::OkStatus();
}

absl::Status CheckData(const v1::JobSpec& spec) {
  const v1::DataSpec& data = spec.data();
  if (!spec.has_data()) return absl::InvalidArgumentError("data is missing");
  if (data.train().has_fraction()) {
    return absl::InvalidArgumentError(
        "data.train.fraction is a key of data.validation, not of data.train");
  }
  RETURN_IF_ERROR(CheckSource("data.train", data.train(), spec.task()));
  const v1::DataFormat format = FormatOf(data.train());
  if (data.has_validation()) {
    RETURN_IF_ERROR(CheckValidation(spec));
    const v1::DataFormat other = FormatOf(data.validation());
    if (!data.validation().has_fraction() &&
        format != v1::DATA_FORMAT_UNSPECIFIED &&
        other != v1::DATA_FORMAT_UNSPECIFIED &&
        (format == v1::DATA_FORMAT_TOKENS) !=
            (other == v1::DATA_FORMAT_TOKENS)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "data.validation is ", WordOf(other), ", but data.train is ",
          WordOf(format), "; token ids and text can't be mixed"));
    }
  }
  RETURN_IF_ERROR(CheckTokenizer(spec, format));
  if (data.has_end_token()) {
    if (format != v1::DATA_FORMAT_TOKENS &&
        format != v1::DATA_FORMAT_UNSPECIFIED) {
      return CheckNotOf(true, "data.end_token", "tokens", WordOf(format));
    }
    const int64_t ids =
        spec.model().has_vocabulary() ? spec.model().vocabulary() : kMostIds;
    RETURN_IF_ERROR(CheckRange("data.end_token", data.end_token(), 0, ids - 1));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::spec_internal
