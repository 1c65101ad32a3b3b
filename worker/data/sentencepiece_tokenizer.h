// SentencePieceTokenizer: a SentencePiece unigram model, made lossless.
//
// The model file is SentencePiece's, with byte fallback. Segmentation is its
// Viterbi search (Kudo, arXiv:1804.10959) and agrees with the library's; the
// rest is ours, because the library loses bytes: text is not normalised and
// gets no dummy prefix, and U+2581 (the library's mark of a space), bytes that
// are not UTF-8, and newlines are always byte pieces. A token's bytes don't
// depend on its neighbours.
//
// The end token is the model's `</s>`, or a further id where it has none.
#ifndef LOCKSTEP_WORKER_DATA_SENTENCEPIECE_TOKENIZER_H_
#define LOCKSTEP_WORKER_DATA_SENTENCEPIECE_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/piece_trie.h"
#include "worker/data/tokenizer.h"

namespace lockstep {

class SentencePieceTokenizer : public Tokenizer {
 public:
  // `model` is the contents of a .model file, `name` its path for messages.
  //   INVALID_ARGUMENT: not such a file, or one without all 256 byte pieces.
  //   UNIMPLEMENTED: another kind than unigram.
  static absl::StatusOr<std::unique_ptr<SentencePieceTokenizer>> Load(
      std::string_view model, std::string_view name);

  int64_t vocabulary() const override {
    return static_cast<int64_t>(pieces_.size());
  }
  int32_t end_token() const override { return end_token_; }
  void Encode(std::string_view text,
              std::vector<int32_t>& tokens) const override;
  absl::StatusOr<std::string> DecodeOne(int32_t token) const override;

 private:
  class Segmenter;
  SentencePieceTokenizer() = default;

  // Bytes of each token.
  std::vector<std::string> pieces_;
  // Score of each token; of a user-defined one, that of the library.
  std::vector<double> scores_;
  std::array<int32_t, 256> byte_tokens_;
  PieceTrie trie_;
  // Score of a character that is no piece.
  float unknown_score_ = 0.0f;
  // Whether spaces occur only at the start of pieces: then words can be
  // segmented one by one.
  bool words_are_separate_ = true;
  int32_t end_token_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_SENTENCEPIECE_TOKENIZER_H_
