#include "worker/data/sentencepiece_tokenizer.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "common/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/data/tokenizer_fixture.h"
#include "worker/data/sentencepiece_model.pb.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AppendUtf8;
using ::lockstep::testing::Decode;
using ::lockstep::testing::Encode;
using ::lockstep::testing::ExpectLossless;
using ::lockstep::testing::ExpectLosslessOverRandomTexts;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::kSpaceMark;
using ::lockstep::testing::Prose;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::Trained;
using ::lockstep::testing::TrainedModel;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(SentencePieceTokenizerTest, IsLosslessOverRandomTexts) {
  ExpectLosslessOverRandomTexts(*Trained());
}

TEST(SentencePieceTokenizerTest, LongTextsAreLossless) {
  const auto tokenizer = Trained();
  ExpectLossless(*tokenizer, Prose(3000));
  ExpectLossless(*tokenizer, std::string(100'001, 'x'));
  std::string wide;
  for (int i = 0; i < 30'001; ++i) wide += "\xe4\xb8\xad";
  ExpectLossless(*tokenizer, wide);
}

TEST(SentencePieceTokenizerTest, TrainedVocabularyIsTheSizeAskedFor) {
  const auto tokenizer = Trained();
  EXPECT_EQ(tokenizer->vocabulary(), 340);
  EXPECT_THAT(tokenizer->DecodeOne(tokenizer->end_token()),
              IsOkAndHolds(Eq("")));
  EXPECT_THAT(tokenizer->DecodeOne(340),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(SentencePieceTokenizerTest, ANewlineIsOneToken) {
  const auto tokenizer = Trained();
  const size_t one = Encode(*tokenizer, "the LORD").size();
  EXPECT_THAT(Encode(*tokenizer, "the LORD\nthe LORD\n"), SizeIs(2 * one + 2));
}

TEST(SentencePieceTokenizerTest, CommonWordsAreFewTokens) {
  const auto tokenizer = Trained();
  const std::string text = Prose(100);
  EXPECT_LT(Encode(*tokenizer, text).size(), text.size() / 3);
}

TEST(SentencePieceTokenizerTest, DamagedModelsNeverCrash) {
  std::mt19937 random(17);
  for (int round = 0; round < 300; ++round) {
    std::string model = TrainedModel();
    for (int i = 0; i < 5; ++i) {
      model[random() % model.size()] = static_cast<char>(random());
    }
    if (round % 3 == 0) model.resize(random() % model.size());
    const auto tokenizer = SentencePieceTokenizer::Load(model, "damaged");
    if (tokenizer.ok()) ExpectLossless(**tokenizer, Prose(3));
  }
}

// What the library makes of each line, as text.
std::vector<std::string> LibraryIds(const std::string& model,
                                    const std::vector<std::string>& lines) {
  TempDir dir;
  dir.Write("m.model", model);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  dir.Write("lines.txt", text);
  const std::string command = std::string(LIBRARY_ENCODER) + " " +
                              dir.File("m.model") + " " + dir.File("lines.txt");
  FILE* const pipe = popen(command.c_str(), "r");
  CHECK(pipe != nullptr);
  std::string output;
  char block[4096];
  while (const size_t got = fread(block, 1, sizeof(block), pipe)) {
    output.append(block, got);
  }
  CHECK(pclose(pipe) == 0) << command;
  std::vector<std::string> ids;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) ids.push_back(line);
  return ids;
}

// Prose, then valid UTF-8 of unknown characters, runs of spaces and letters.
std::vector<std::string> MixedLines() {
  std::mt19937 random(5);
  std::vector<std::string> lines;
  std::istringstream prose(Prose(400));
  for (std::string line; std::getline(prose, line);) lines.push_back(line);
  const std::string letters = lines[0] + lines[1];
  for (int i = 0; i < 400; ++i) {
    std::string line;
    for (int w = 0; w < 30; ++w) {
      const char letter = letters[random() % letters.size()];
      switch (random() % 6) {
        case 0:
          line = AppendUtf8(0x4e00 + random() % 2000, line);
          break;
        case 1:
          line += "  ";
          break;
        default:
          line += static_cast<unsigned char>(letter) < 0x80 ? letter : 'x';
      }
    }
    lines.push_back(line);
  }
  return lines;
}

void ExpectSegmentsLikeTheLibrary(const std::string& model) {
  const std::vector<std::string> lines = MixedLines();
  const std::vector<std::string> theirs = LibraryIds(model, lines);
  ASSERT_EQ(theirs.size(), lines.size());
  ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                       SentencePieceTokenizer::Load(model, "model"));
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string ours;
    for (const int32_t id : Encode(*tokenizer, lines[i])) {
      ours += std::to_string(id) + " ";
    }
    EXPECT_EQ(ours, theirs[i]) << lines[i];
  }
}

TEST(SentencePieceTokenizerTest, SegmentsLikeTheLibrary) {
  ExpectSegmentsLikeTheLibrary(TrainedModel());
}

TEST(SentencePieceTokenizerTest, SegmentsOtherKindsOfPiecesLikeTheLibrary) {
  sentencepiece::Model model;
  ASSERT_TRUE(model.ParseFromString(TrainedModel()));
  const auto add = [&model](const std::string& piece,
                            sentencepiece::Model::Piece::Type type) {
    sentencepiece::Model::Piece* const added = model.add_pieces();
    added->set_piece(piece);
    added->set_type(type);
    added->set_score(-3.0f);
  };
  add("pass;eth", sentencepiece::Model::Piece::USER_DEFINED);
  add("\xe4\xb8\x80", sentencepiece::Model::Piece::USER_DEFINED);
  add("Israelethand", sentencepiece::Model::Piece::UNUSED);
  // Across spaces.
  add(std::string("the") + kSpaceMark + "LORD",
      sentencepiece::Model::Piece::NORMAL);
  add(std::string(kSpaceMark) + kSpaceMark,
      sentencepiece::Model::Piece::NORMAL);
  ExpectSegmentsLikeTheLibrary(model.SerializeAsString());
}

class SentencePieceModelTest : public ::testing::Test {
 protected:
  SentencePieceModelTest() {
    Add("<unk>", sentencepiece::Model::Piece::UNKNOWN);
    for (int i = 0; i < 256; ++i) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(i));
      Add(name, sentencepiece::Model::Piece::BYTE);
    }
  }
  sentencepiece::Model::Piece* Add(const std::string& piece,
                                   sentencepiece::Model::Piece::Type type =
                                       sentencepiece::Model::Piece::NORMAL) {
    sentencepiece::Model::Piece* const added = model_.add_pieces();
    added->set_piece(piece);
    added->set_type(type);
    added->set_score(-1.0f);
    return added;
  }
  absl::StatusOr<std::unique_ptr<SentencePieceTokenizer>> Load() {
    return SentencePieceTokenizer::Load(model_.SerializeAsString(), "m.model");
  }

  sentencepiece::Model model_;
};

TEST_F(SentencePieceModelTest, WithoutAnEndPieceAnIdIsAdded) {
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, Load());
  EXPECT_EQ(tokenizer->vocabulary(), 258);
  EXPECT_EQ(tokenizer->end_token(), 257);
}

TEST_F(SentencePieceModelTest, PiecesAcrossSpacesAreFound) {
  Add(std::string("a") + kSpaceMark + "b");
  Add("a");
  Add(std::string(kSpaceMark) + "b");
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, Load());
  EXPECT_THAT(Encode(*tokenizer, "a b"), ElementsAre(257));
  EXPECT_EQ(Decode(*tokenizer, {257}), "a b");
  ExpectLosslessOverRandomTexts(*tokenizer);
}

TEST_F(SentencePieceModelTest, BrokenModelsAreRefused) {
  EXPECT_THAT(SentencePieceTokenizer::Load("not a model", "m.model"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("m.model: not a SentencePiece model")));
  EXPECT_THAT(SentencePieceTokenizer::Load("", "m.model"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  model_.mutable_pieces(66)->set_piece("<0x4>");
  EXPECT_THAT(Load(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("<0x4>")));
  model_.mutable_pieces(66)->set_type(sentencepiece::Model::Piece::UNUSED);
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("no piece <0x41>")));
}

TEST_F(SentencePieceModelTest, OtherKindsAreNotBuiltYet) {
  model_.mutable_trainer_spec()->set_model_type(
      sentencepiece::Model::Trainer::BPE);
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("not built yet")));
}

TEST_F(SentencePieceModelTest, AScoreThatIsNoNumberIsRefused) {
  Add("x")->set_score(std::nanf(""));
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("finite score")));
}

}  // namespace
}  // namespace lockstep
