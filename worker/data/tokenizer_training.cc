#include "worker/data/tokenizer_training.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/files/file_reader.h"
#include "common/status_macros.h"
#include "common/utf8.h"
#include "worker/data/child_process.h"
#include "worker/data/str_cat.h"
#include "worker/data/tokenizer_files.h"

namespace lockstep {
namespace {

// The library passes over longer sentences.
constexpr size_t kMostSentenceBytes = 4000;
constexpr absl::Duration kTrainingTimeout = absl::Minutes(30);

// Bytes of the character at the start of `text` that the trainer can take; 0
// for bytes that are no UTF-8 and for the characters that it keeps for itself:
// NUL, tab, U+2581 and U+2585.
size_t TrainableLength(std::string_view text) {
  if (text.front() == '\0' || text.front() == '\t') return 0;
  const std::string_view character = text.substr(0, 3);
  if (character == "\xe2\x96\x81" || character == "\xe2\x96\x85") return 0;
  return Utf8Length(text);
}

// "Internal: file.cc(12) [condition] message" without what is ours to know.
std::string_view Reason(std::string_view message) {
  if (const size_t bracket = message.rfind("] "); bracket != message.npos) {
    message.remove_prefix(bracket + 2);
  }
  return message.substr(0, message.find('\n'));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SentenceSample>> SentenceSample::Create(
    const std::string& path, int64_t text_bytes) {
  ASSIGN_OR_RETURN(auto writer, FileWriter::Create(path));
  const double share = static_cast<double>(kMostBytes) /
                       static_cast<double>(std::max(text_bytes, kMostBytes));
  return std::unique_ptr<SentenceSample>(
      new SentenceSample(std::move(writer), share));
}

bool SentenceSample::Keep(int64_t line) const {
  if (written_bytes_ >= 2 * kMostBytes) return false;
  if (share_ >= 1.0) return true;
  // Multiplicative hashing (Knuth, 6.4) of the line's number.
  const uint64_t hash = static_cast<uint64_t>(line) * 0x9e3779b97f4a7c15ULL;
  return static_cast<double>(hash >> 11) * 0x1p-53 < share_;
}

absl::Status SentenceSample::Add(std::string_view piece) {
  while (true) {
    const size_t newline = piece.find('\n');
    if (newline == std::string_view::npos) break;
    const bool keep = Keep(lines_++);
    if (keep && line_.empty()) {
      RETURN_IF_ERROR(AddLine(piece.substr(0, newline)));
    } else if (keep) {
      line_.append(piece.substr(0, newline));
      RETURN_IF_ERROR(AddLine(line_));
    }
    line_.clear();
    piece.remove_prefix(newline + 1);
  }
  // A line may be as long as a file: what it has so far may go out already.
  if (Keep(lines_)) line_.append(piece);
  constexpr size_t kMostHeld = 1 << 20;
  if (line_.size() > kMostHeld) {
    RETURN_IF_ERROR(AddLine(line_));
    line_.clear();
  }
  return absl::OkStatus();
}

absl::Status SentenceSample::EndDocument() {
  if (line_.empty()) return absl::OkStatus();
  ++lines_;
  RETURN_IF_ERROR(AddLine(line_));
  line_.clear();
  return absl::OkStatus();
}

absl::Status SentenceSample::AddLine(std::string_view line) {
  size_t start = 0;
  size_t at = 0;
  while (at < line.size()) {
    const size_t character = TrainableLength(line.substr(at));
    const bool full = at - start + character > kMostSentenceBytes;
    if (character > 0 && !full) {
      at += character;
      continue;
    }
    // A full sentence ends before a space if it has one.
    size_t end = at;
    if (full) {
      const size_t space = line.substr(0, at).rfind(' ');
      if (space != std::string_view::npos && space > start) end = space;
    }
    RETURN_IF_ERROR(AddSentence(line.substr(start, end - start)));
    start = at = full ? end : at + 1;
  }
  return AddSentence(line.substr(start));
}

absl::Status SentenceSample::AddSentence(std::string_view sentence) {
  if (sentence.empty()) return absl::OkStatus();
  for (std::string_view rest = sentence; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' ', 1));
    const auto [met, is_new] = words_.try_emplace(AbslView(word), false);
    if (!is_new) met->second = true;
    rest.remove_prefix(word.size());
  }
  return Write(sentence);
}

absl::Status SentenceSample::Write(std::string_view sentence) {
  RETURN_IF_ERROR(writer_->Append(sentence));
  written_bytes_ += static_cast<int64_t>(sentence.size()) + 1;
  return writer_->Append("\n");
}

absl::Status SentenceSample::Finish() {
  RETURN_IF_ERROR(EndDocument());
  if (written_bytes_ == 0) {
    return absl::InvalidArgumentError(
        "data.train has no text to train a tokenizer on");
  }
  std::vector<std::string> repeated;
  for (const auto& [word, again] : words_) {
    if (again) repeated.push_back(word);
  }
  std::sort(repeated.begin(), repeated.end());
  for (const std::string& word : repeated) RETURN_IF_ERROR(Write(word));
  return writer_->Finish().status();
}

absl::StatusOr<std::string> TrainTokenizer(const TokenizerTraining& training) {
  std::string trainer = training.trainer_path;
  if (trainer.empty()) {
    ASSIGN_OR_RETURN(const std::string folder, ProgramFolder());
    trainer = folder + "/lockstep-tokenizer-trainer";
  }
  const std::string model_path = training.work_folder + "/trained.model";
  const std::string log_path = training.work_folder + "/trainer.log";
  ChildProcess child;
  child.command = {trainer, training.sentences_path, model_path,
                   StrCat(training.vocabulary)};
  child.stderr_path = log_path;
  child.timeout = kTrainingTimeout;
  child.alive = training.alive;
  ASSIGN_OR_RETURN(const int code, RunChild(child));
  if (code != 0) {
    constexpr int64_t kMostLogBytes = 64 << 10;
    const absl::StatusOr<std::string> log =
        ReadWholeFile(log_path, kMostLogBytes);
    return absl::InvalidArgumentError(
        StrCat("data.tokenizer.vocabulary ", training.vocabulary,
               ": SentencePiece can't train on data.train: ",
               log.ok() ? Reason(*log) : std::string_view("it says nothing")));
  }
  return ReadWholeFile(model_path, kMostModelBytes);
}

}  // namespace lockstep
