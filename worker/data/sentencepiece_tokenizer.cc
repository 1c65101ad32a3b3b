#include "worker/data/sentencepiece_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/log.h"
#include "common/utf8.h"
#include "worker/data/sentencepiece_model.pb.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

using Model = sentencepiece::Model;
using Piece = sentencepiece::Model::Piece;

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581
constexpr int kMostPieces = 10'000'000;
constexpr size_t kMostPieceBytes = 4096;
// As in the library: how much less likely than any piece an unknown character
// is.
constexpr float kUnknownPenalty = 10.0f;
// Segments are cut here so that a text without spaces takes bounded memory.
constexpr size_t kMostSegmentBytes = 16 << 10;

absl::StatusOr<int> ByteOf(const std::string& piece) {
  // "<0x41>".
  int value = 0;
  if (piece.size() == 6 && piece.rfind("<0x", 0) == 0 && piece[5] == '>') {
    for (const char c : {piece[3], piece[4]}) {
      const char* const digits = "0123456789ABCDEF";
      const char* const digit = std::find(digits, digits + 16, c);
      if (digit == digits + 16) value = -1 - 256 * 16;
      value = value * 16 + static_cast<int>(digit - digits);
    }
    if (value >= 0) return value;
  }
  return absl::InvalidArgumentError(
      StrCat("byte piece \"", piece, "\" is not like <0x41>"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SentencePieceTokenizer>>
SentencePieceTokenizer::Load(std::string_view model_bytes,
                             std::string_view name) {
  const auto broken = [name](std::string_view what) {
    return absl::InvalidArgumentError(StrCat(name, ": ", what));
  };
  Model model;
  if (model_bytes.size() > std::numeric_limits<int>::max() ||
      !model.ParseFromArray(model_bytes.data(),
                            static_cast<int>(model_bytes.size())) ||
      model.pieces().empty()) {
    return broken("not a SentencePiece model");
  }
  const Model::Trainer::ModelType kind = model.trainer_spec().model_type();
  if (kind != Model::Trainer::UNIGRAM) {
    return absl::UnimplementedError(StrCat(
        name, ": SentencePiece models other than unigram are not built yet"));
  }
  if (model.pieces_size() > kMostPieces) {
    return broken(
        StrCat(model.pieces_size(), " pieces, want at most ", kMostPieces));
  }

  auto tokenizer =
      std::unique_ptr<SentencePieceTokenizer>(new SentencePieceTokenizer());
  SentencePieceTokenizer& t = *tokenizer;
  t.byte_tokens_.fill(-1);
  float least = std::numeric_limits<float>::max();
  float most = std::numeric_limits<float>::lowest();
  for (const Piece& piece : model.pieces()) {
    if (piece.type() != Piece::NORMAL) continue;
    if (!std::isfinite(piece.score())) {
      return broken(
          StrCat("piece \"", piece.piece(), "\" has no finite score"));
    }
    least = std::min(least, piece.score());
    most = std::max(most, piece.score());
  }
  if (least > most) least = most = 0.0f;
  t.unknown_score_ = least - kUnknownPenalty;

  std::optional<int32_t> end_token;
  for (int id = 0; id < model.pieces_size(); ++id) {
    const Piece& piece = model.pieces(id);
    std::string bytes;
    double score = piece.score();
    switch (piece.type()) {
      case Piece::NORMAL:
      case Piece::USER_DEFINED:
        bytes =
            absl::StrReplaceAll(piece.piece(), {{AbslView(kSpaceMark), " "}});
        if (bytes.empty() || bytes.size() > kMostPieceBytes) {
          return broken(StrCat("piece ", id, " has ", bytes.size(),
                               " bytes, want 1 to ", kMostPieceBytes));
        }
        if (piece.type() == Piece::USER_DEFINED) {
          score = static_cast<float>(piece.piece().size()) * most - 0.1;
        }
        if (bytes.find(' ', 1) != std::string::npos) {
          t.words_are_separate_ = false;
        }
        t.trie_.Add(bytes, id);
        break;
      case Piece::BYTE: {
        const absl::StatusOr<int> value = ByteOf(piece.piece());
        if (!value.ok()) return broken(std::string(value.status().message()));
        bytes = std::string(1, static_cast<char>(*value));
        t.byte_tokens_[static_cast<size_t>(*value)] = id;
        break;
      }
      case Piece::CONTROL:
        if (id == model.trainer_spec().eos_id()) end_token = id;
        break;
      case Piece::UNKNOWN:
      case Piece::UNUSED:
        break;
    }
    t.pieces_.push_back(std::move(bytes));
    t.scores_.push_back(score);
  }
  for (size_t value = 0; value < t.byte_tokens_.size(); ++value) {
    if (t.byte_tokens_[value] < 0) {
      return broken(absl::StrFormat(
          "no piece <0x%02X>; a tokenizer must keep every byte (train it with "
          "byte_fallback)",
          value));
    }
  }
  if (!end_token.has_value()) {
    end_token = static_cast<int32_t>(t.pieces_.size());
    t.pieces_.emplace_back();
    t.scores_.push_back(0.0);
  }
  t.end_token_ = *end_token;
  return tokenizer;
}

// Encodes one text: keeps what the Viterbi search needs and the words that it
// has met.
class SentencePieceTokenizer::Segmenter {
 public:
  Segmenter(const SentencePieceTokenizer& tokenizer,
            std::vector<int32_t>& tokens)
      : t_(tokenizer), tokens_(tokens) {}

  // A run of UTF-8 without newline and U+2581.
  void Run(std::string_view run) {
    if (!t_.words_are_separate_) {
      Segment(run);
      return;
    }
    while (!run.empty()) {
      const size_t space = run.find(' ', 1);
      Word(run.substr(0, space));
      run.remove_prefix(std::min(space, run.size()));
    }
  }

  void Byte(char c) {
    tokens_.push_back(t_.byte_tokens_[static_cast<unsigned char>(c)]);
  }

 private:
  struct Cell {
    float score;
    // Start of the best last piece, and its token; negative: an unknown
    // character.
    uint32_t start;
    int32_t token;
  };
  struct Span {
    size_t first;
    size_t count;
  };

  void Word(std::string_view word) {
    const auto [met, is_new] = words_.try_emplace(word, Span{});
    if (is_new) {
      const size_t first = tokens_.size();
      Segment(word);
      met->second = {first, tokens_.size() - first};
      return;
    }
    const Span span = met->second;
    tokens_.reserve(tokens_.size() + span.count);
    for (size_t i = 0; i < span.count; ++i) {
      tokens_.push_back(tokens_[span.first + i]);
    }
  }

  void Segment(std::string_view text) {
    while (text.size() > kMostSegmentBytes) {
      size_t cut = kMostSegmentBytes;
      while (!StartsUtf8(text[cut])) --cut;
      Viterbi(text.substr(0, cut));
      text.remove_prefix(cut);
    }
    Viterbi(text);
  }

  void Viterbi(std::string_view text) {
    constexpr float kNone = std::numeric_limits<float>::lowest();
    cells_.assign(text.size() + 1, Cell{kNone, 0, -1});
    cells_[0].score = 0.0f;
    // Compares in double and keeps in float, as the library does: it decides
    // ties.
    const auto offer = [this](size_t start, size_t end, double score,
                              int32_t token) {
      const double sum = cells_[start].score + score;
      Cell& cell = cells_[end];
      if (sum > cell.score || cell.score == kNone) {
        cell = {static_cast<float>(sum), static_cast<uint32_t>(start), token};
      }
    };
    for (size_t at = 0; at < text.size();) {
      const size_t character = Utf8Length(text.substr(at));
      bool character_is_piece = false;
      t_.trie_.Prefixes(text.substr(at), [&](size_t bytes, int32_t token) {
        character_is_piece |= bytes == character;
        offer(at, at + bytes, t_.scores_[static_cast<size_t>(token)], token);
      });
      if (!character_is_piece) {
        offer(at, at + character, t_.unknown_score_, -1);
      }
      at += character;
    }
    const size_t first = tokens_.size();
    for (size_t end = text.size(); end > 0;) {
      const Cell& cell = cells_[end];
      if (cell.token >= 0) {
        tokens_.push_back(cell.token);
      } else {
        for (size_t i = end; i-- > cell.start;) Byte(text[i]);
      }
      end = cell.start;
    }
    std::reverse(tokens_.begin() + static_cast<ptrdiff_t>(first),
                 tokens_.end());
  }

  const SentencePieceTokenizer& t_;
  std::vector<int32_t>& tokens_;
  std::vector<Cell> cells_;
  // Where the tokens of a word that was met before lie in tokens_.
  absl::flat_hash_map<std::string_view, Span> words_;
};

void SentencePieceTokenizer::Encode(std::string_view text,
                                    std::vector<int32_t>& tokens) const {
  Segmenter segmenter(*this, tokens);
  size_t start = 0;
  size_t at = 0;
  const auto end_run = [&] {
    if (at > start) segmenter.Run(text.substr(start, at - start));
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const size_t character = Utf8Length(rest);
    const bool is_mark = rest.substr(0, kSpaceMark.size()) == kSpaceMark;
    if (character > 0 && !is_mark && rest.front() != '\n') {
      at += character;
      continue;
    }
    end_run();
    const size_t bytes = is_mark ? kSpaceMark.size() : 1;
    for (size_t i = 0; i < bytes; ++i) segmenter.Byte(text[at + i]);
    at += bytes;
    start = at;
  }
  end_run();
}

absl::StatusOr<std::string> SentencePieceTokenizer::DecodeOne(
    int32_t token) const {
  if (token < 0 || token >= vocabulary()) {
    return absl::OutOfRangeError(
        StrCat("token ", token, " is not in [0, ", vocabulary(), ")"));
  }
  return pieces_[static_cast<size_t>(token)];
}

}  // namespace lockstep
