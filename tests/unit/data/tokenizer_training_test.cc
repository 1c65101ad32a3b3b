#include "worker/data/tokenizer_training.h"

#include <iterator>
#include <random>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/data/tokenizer_fixture.h"
#include "worker/data/sentencepiece_tokenizer.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AppendUtf8;
using ::lockstep::testing::Encode;
using ::lockstep::testing::kSpaceMark;
using ::lockstep::testing::Prose;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(SentencePieceTokenizerTest, TheSameTextTrainsTheSameModel) {
  TempDir dir;
  dir.Write("s.txt", Prose(300));
  TokenizerTraining training;
  training.sentences_path = dir.File("s.txt");
  training.work_folder = dir.path();
  training.vocabulary = 320;
  training.trainer_path = TOKENIZER_TRAINER;
  ASSERT_OK_AND_ASSIGN(const std::string first, TrainTokenizer(training));
  ASSERT_OK_AND_ASSIGN(const std::string second, TrainTokenizer(training));
  EXPECT_TRUE(first == second);
}

// Each word is followed by a space wherever it occurs.
TEST(SentencePieceTokenizerTest, WordsWithoutPunctuationBecomePieces) {
  TempDir dir;
  std::mt19937 random(8);
  const char* const words[] = {"same ", "few ", "words ", "again ", "river "};
  std::string text;
  for (int i = 0; i < 3000; ++i) text += words[random() % std::size(words)];
  ASSERT_OK_AND_ASSIGN(const auto sample,
                       SentenceSample::Create(dir.File("s"), 100));
  ASSERT_OK(sample->Add(text));
  ASSERT_OK(sample->Finish());
  TokenizerTraining training;
  training.sentences_path = dir.File("s");
  training.work_folder = dir.path();
  training.vocabulary = 300;
  training.trainer_path = TOKENIZER_TRAINER;
  ASSERT_OK_AND_ASSIGN(const std::string model, TrainTokenizer(training));
  ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                       SentencePieceTokenizer::Load(model, "trained"));
  EXPECT_THAT(Encode(*tokenizer, " river again words"), SizeIs(3));
}

TEST(SentencePieceTokenizerTest, ATooSmallVocabularySaysSo) {
  TempDir dir;
  std::string many;
  for (uint32_t code = 0x4e00; code < 0x4e00 + 400; ++code) {
    many = AppendUtf8(code, many);
  }
  dir.Write("s.txt", many + "\n" + many + "\n");
  TokenizerTraining training;
  training.sentences_path = dir.File("s.txt");
  training.work_folder = dir.path();
  training.vocabulary = 300;
  training.trainer_path = TOKENIZER_TRAINER;
  EXPECT_THAT(TrainTokenizer(training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("data.tokenizer.vocabulary 300"),
                             HasSubstr("smaller than required_chars"))));
}

TEST(SentencePieceTokenizerTest, AMissingTrainerIsNamed) {
  TempDir dir;
  dir.Write("s.txt", "x\n");
  TokenizerTraining training;
  training.sentences_path = dir.File("s.txt");
  training.work_folder = dir.path();
  training.vocabulary = 300;
  training.trainer_path = dir.File("no-such-program");
  EXPECT_THAT(TrainTokenizer(training), StatusIs(absl::StatusCode::kNotFound,
                                                 HasSubstr("no-such-program")));
}

TEST(SentenceSampleTest, WhatTheLibraryCannotTakeEndsASentence) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto sample,
                       SentenceSample::Create(dir.File("s"), 100));
  ASSERT_OK(sample->Add(std::string("ab") + kSpaceMark + "c\td" +
                        std::string(1, '\0') + "e\xffg\n\nnext "));
  ASSERT_OK(sample->Add("line"));
  ASSERT_OK(sample->EndDocument());
  ASSERT_OK(sample->Add("other"));
  ASSERT_OK(sample->Finish());
  EXPECT_EQ(dir.Read("s").substr(0, 3), "ab\n");
  EXPECT_THAT(dir.Read("s"), EndsWith("next line\nother\n"));
  EXPECT_EQ(dir.Read("s").find('\t'), std::string::npos);
  EXPECT_EQ(dir.Read("s").find('\0'), std::string::npos);
}

TEST(SentenceSampleTest, LongLinesAreCutAtSpaces) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto sample,
                       SentenceSample::Create(dir.File("s"), 100'000));
  std::string line;
  for (int i = 0; i < 5000; ++i) line += "word" + std::to_string(i) + " ";
  ASSERT_OK(sample->Add(line));
  ASSERT_OK(sample->Finish());
  std::istringstream sentences(dir.Read("s"));
  std::string joined;
  for (std::string sentence; std::getline(sentences, sentence);) {
    EXPECT_LE(sentence.size(), 4000u);
    if (!joined.empty()) {
      EXPECT_EQ(sentence.front(), ' ');
    }
    joined += sentence;
  }
  EXPECT_EQ(joined, line);
}

TEST(SentenceSampleTest, ALargeTextIsSampledToAboutTheLimit) {
  TempDir dir;
  const std::string line(999, 'x');
  ASSERT_OK_AND_ASSIGN(
      const auto sample,
      SentenceSample::Create(dir.File("s"), 4 * SentenceSample::kMostBytes));
  for (int64_t i = 0; i < 4 * SentenceSample::kMostBytes / 1000; ++i) {
    ASSERT_OK(sample->Add(line + "\n"));
  }
  ASSERT_OK(sample->Finish());
  EXPECT_NEAR(static_cast<double>(dir.Read("s").size()),
              static_cast<double>(SentenceSample::kMostBytes),
              0.05 * SentenceSample::kMostBytes);
}

TEST(SentenceSampleTest, RepeatedWordsFollowInOrder) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto sample,
                       SentenceSample::Create(dir.File("s"), 100));
  ASSERT_OK(sample->Add("b a b  a\nonce b a\n"));
  ASSERT_OK(sample->Finish());
  EXPECT_EQ(dir.Read("s"), "b a b  a\nonce b a\n a\n b\n");
}

TEST(SentenceSampleTest, NothingToTrainOnIsAnError) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto sample,
                       SentenceSample::Create(dir.File("s"), 100));
  ASSERT_OK(sample->Add("\n\n\t\n"));
  EXPECT_THAT(sample->Finish(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("no text")));
}

}  // namespace
}  // namespace lockstep
