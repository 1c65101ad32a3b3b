// What tests of tokenizers share: texts, a model trained once for all of them,
// and the property that all have: decoding gives the encoded bytes back.
#ifndef LOCKSTEP_TESTS_UNIT_DATA_TOKENIZER_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_DATA_TOKENIZER_FIXTURE_H_

#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"
#include "worker/data/sentencepiece_tokenizer.h"
#include "worker/data/tokenizer.h"
#include "worker/data/tokenizer_training.h"

namespace lockstep {
namespace testing {

// U+2581, which SentencePiece has in place of a space.
inline constexpr char kSpaceMark[] = "\xe2\x96\x81";

inline std::vector<int32_t> Encode(const Tokenizer& tokenizer,
                                   std::string_view text) {
  std::vector<int32_t> tokens;
  tokenizer.Encode(text, tokens);
  return tokens;
}

inline std::string Decode(const Tokenizer& tokenizer,
                          const std::vector<int32_t>& tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    const absl::StatusOr<std::string> bytes = tokenizer.DecodeOne(token);
    CHECK(bytes.ok()) << bytes.status();
    text += *bytes;
  }
  return text;
}

// English-like text from a few words, always the same.
inline std::string Prose(int lines) {
  const char* const words[] = {
      "the",    "LORD",  "said",  "unto",  "Moses,", "and",        "it",
      "came",   "to",    "pass;", "great", "sea",    "days.",      "of",
      "Israel", "house", "king",  "river", "shall",  "caf\xc3\xa9"};
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    for (int w = 0; w < 12; ++w) {
      if (w > 0) text += ' ';
      text += words[random() % std::size(words)];
      if (random() % 4 == 0) text += "eth";
    }
    text += '\n';
  }
  return text;
}

// Trained once for all tests.
inline const std::string& TrainedModel() {
  static const std::string* const model = [] {
    TempDir dir;
    const std::string text = Prose(2000);
    auto sample = SentenceSample::Create(dir.File("sentences.txt"),
                                         static_cast<int64_t>(text.size()));
    CHECK(sample.ok()) << sample.status();
    CHECK((*sample)->Add(text).ok() && (*sample)->Finish().ok());
    TokenizerTraining training;
    training.sentences_path = dir.File("sentences.txt");
    training.work_folder = dir.path();
    training.vocabulary = 340;
    training.trainer_path = TOKENIZER_TRAINER;
    absl::StatusOr<std::string> trained = TrainTokenizer(training);
    CHECK(trained.ok()) << trained.status();
    return new std::string(*trained);
  }();
  return *model;
}

inline std::unique_ptr<Tokenizer> Trained() {
  auto tokenizer = SentencePieceTokenizer::Load(TrainedModel(), "trained");
  CHECK(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// `text` and the character `code`, valid or not.
inline std::string AppendUtf8(uint32_t code, std::string text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
  return text;
}

inline void ExpectLossless(const Tokenizer& tokenizer,
                           const std::string& text) {
  const std::vector<int32_t> tokens = Encode(tokenizer, text);
  ASSERT_TRUE(Decode(tokenizer, tokens) == text)
      << ::testing::PrintToString(text);
  for (const int32_t token : tokens) {
    ASSERT_THAT(token, ::testing::Ne(tokenizer.end_token()));
    ASSERT_GE(token, 0);
    ASSERT_LT(token, tokenizer.vocabulary());
  }
}

inline void ExpectLosslessOverRandomTexts(const Tokenizer& tokenizer) {
  std::mt19937 random(2024);
  const std::string prose = Prose(50);
  const std::string parts[] = {kSpaceMark,     std::string(1, '\0'),
                               "\n",           "\r\n",
                               "\t",           " ",
                               "  ",           "\xe2\x96",
                               "\xe2\x96\x85", "\xc3",
                               "\xed\xa0\x80", "\xf4\x90\x80\x80",
                               "\xc0\x80",     "\xff\xfe",
                               "</s>",         "<0x41>",
                               "<unk>",        "\xef\xbb\xbf"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const size_t pieces = random() % 30;
    for (size_t i = 0; i < pieces; ++i) {
      switch (random() % 4) {
        case 0:
          text += static_cast<char>(random());
          break;
        case 1:
          text = AppendUtf8(random() % 0x110000, text);
          break;
        case 2:
          text += parts[random() % std::size(parts)];
          break;
        default:
          text += prose.substr(random() % prose.size(), random() % 20);
      }
    }
    ExpectLossless(tokenizer, text);
  }
}

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_DATA_TOKENIZER_FIXTURE_H_
