#include "worker/data/tokenizer.h"

#include <cstdio>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/data/byte_tokenizer.h"
#include "worker/data/sentencepiece_model.pb.h"
#include "worker/data/sentencepiece_tokenizer.h"
#include "worker/data/tokenizer_files.h"
#include "worker/data/tokenizer_training.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::SizeIs;

constexpr char kSpaceMark[] = "\xe2\x96\x81";

std::vector<int32_t> Encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> tokens;
  tokenizer.Encode(text, tokens);
  return tokens;
}

std::string Decode(const Tokenizer& tokenizer,
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
std::string Prose(int lines) {
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
const std::string& TrainedModel() {
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

std::unique_ptr<Tokenizer> Trained() {
  auto tokenizer = SentencePieceTokenizer::Load(TrainedModel(), "trained");
  CHECK(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::string AppendUtf8(uint32_t code, std::string text) {
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

void ExpectLossless(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<int32_t> tokens = Encode(tokenizer, text);
  ASSERT_TRUE(Decode(tokenizer, tokens) == text)
      << ::testing::PrintToString(text);
  for (const int32_t token : tokens) {
    ASSERT_THAT(token, Ne(tokenizer.end_token()));
    ASSERT_GE(token, 0);
    ASSERT_LT(token, tokenizer.vocabulary());
  }
}

void ExpectLosslessOverRandomTexts(const Tokenizer& tokenizer) {
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

TEST(ByteTokenizerTest, IsLosslessOverRandomTexts) {
  ExpectLosslessOverRandomTexts(ByteTokenizer());
}

TEST(ByteTokenizerTest, BytesAreTheirValues) {
  const ByteTokenizer tokenizer;
  EXPECT_THAT(Encode(tokenizer, std::string("a\0\xff", 3)),
              ElementsAre(97, 0, 255));
  EXPECT_EQ(tokenizer.vocabulary(), 257);
  EXPECT_THAT(tokenizer.DecodeOne(256), IsOkAndHolds(Eq("")));
  EXPECT_THAT(tokenizer.DecodeOne(257),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(tokenizer.DecodeOne(-1), StatusIs(absl::StatusCode::kOutOfRange));
}

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

TEST(SentenceSampleTest, NothingToTrainOnIsAnError) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto sample,
                       SentenceSample::Create(dir.File("s"), 100));
  ASSERT_OK(sample->Add("\n\n\t\n"));
  EXPECT_THAT(sample->Finish(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("no text")));
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

TEST(TokenizerFilesTest, ATokenizerComesBackFromItsFiles) {
  TempDir dir;
  dir.Write("a/lockstep_tokenizer.json", TokenizerKindJson("sentencepiece"));
  dir.Write("b/tokenizer.model", TrainedModel());
  ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                       LoadTokenizer({dir.File("b/tokenizer.model"),
                                      dir.File("a/lockstep_tokenizer.json")}));
  EXPECT_EQ(Encode(*tokenizer, Prose(5)), Encode(*Trained(), Prose(5)));
  dir.Write("c/lockstep_tokenizer.json", TokenizerKindJson("bytes"));
  ASSERT_OK_AND_ASSIGN(const auto bytes,
                       LoadTokenizer({dir.File("c/lockstep_tokenizer.json")}));
  EXPECT_EQ(bytes->vocabulary(), 257);
}

TEST(TokenizerFilesTest, LabelsComeBackFromTheirFile) {
  TempDir dir;
  const std::vector<std::string> labels = {"", "New \"T\"", "Old\n"};
  dir.Write("labels.json", LabelsJson(labels));
  EXPECT_THAT(LoadLabels({dir.File("labels.json")}), IsOkAndHolds(Eq(labels)));
  EXPECT_THAT(LoadLabels({}), IsOkAndHolds(SizeIs(0)));
  dir.Write("labels.json", "{}");
  EXPECT_THAT(LoadLabels({dir.File("labels.json")}),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(TokenizerFilesTest, WhatIsMissingOrBrokenIsNamed) {
  TempDir dir;
  EXPECT_THAT(LoadTokenizer({}), StatusIs(absl::StatusCode::kNotFound));
  dir.Write("lockstep_tokenizer.json", "{]");
  EXPECT_THAT(LoadTokenizer({dir.File("lockstep_tokenizer.json")}),
              StatusIs(absl::StatusCode::kDataLoss));
  dir.Write("lockstep_tokenizer.json", TokenizerKindJson("words"));
  EXPECT_THAT(LoadTokenizer({dir.File("lockstep_tokenizer.json")}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("words")));
  dir.Write("lockstep_tokenizer.json", TokenizerKindJson("sentencepiece"));
  EXPECT_THAT(
      LoadTokenizer({dir.File("lockstep_tokenizer.json")}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("tokenizer.model")));
}

}  // namespace
}  // namespace lockstep
