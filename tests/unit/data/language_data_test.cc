// Language model data from files to micro-batches.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/data/prepared_data_fixture.h"
#include "worker/data/tokenizer.h"

namespace lockstep {
namespace {

using ::lockstep::testing::PreparedDataFixture;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int32_t kEnd = 256;

using LanguageDataTest = PreparedDataFixture;

TEST_F(LanguageDataTest, OneTextIsOneDocumentBetweenEndTokens) {
  Train("a.txt", "abcdef\n");
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  // END a b c | d e f \n | and the target END: n = 8 targets, T = 4.
  const Dataset& train = data->train();
  EXPECT_EQ(train.samples(), 2);
  EXPECT_EQ(train.targets(), 8);
  EXPECT_EQ(train.text_bytes(), 7);
  EXPECT_EQ(data->validation(), nullptr);
  EXPECT_EQ(data->vocabulary(), 257);
  const MicroBatch first = Sample(train, 0);
  EXPECT_THAT(first.tokens, ElementsAre(kEnd, 'a', 'b', 'c'));
  EXPECT_THAT(first.targets, ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(first.positions, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(first.sample_positions, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(first.segment_bounds, ElementsAre(0, 4));
  EXPECT_THAT(first.sample_bounds, ElementsAre(0, 4));
  const MicroBatch second = Sample(train, 1);
  EXPECT_THAT(second.tokens, ElementsAre('d', 'e', 'f', '\n'));
  EXPECT_THAT(second.targets, ElementsAre('e', 'f', '\n', kEnd));
  EXPECT_THAT(second.positions, ElementsAre(0, 1, 2, 3));
}

TEST_F(LanguageDataTest, TheLastSampleHasTheRowsThatAreLeft) {
  Train("a.txt", "abcde");  // 6 targets
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_EQ(data->train().samples(), 2);
  EXPECT_EQ(data->train().ValidTargets(0), 4);
  EXPECT_EQ(data->train().ValidTargets(1), 2);
  const MicroBatch last = Sample(data->train(), 1);
  EXPECT_THAT(last.tokens, ElementsAre('d', 'e'));
  EXPECT_THAT(last.targets, ElementsAre('e', kEnd));
}

TEST_F(LanguageDataTest, EachTokenAndEachClosingEndIsATargetExactlyOnce) {
  Train("a.jsonl",
        "{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": \"cde\"}\n");
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < data->train().samples(); ++i) {
    for (int32_t target : Sample(data->train(), i).targets) {
      targets.push_back(target);
    }
  }
  EXPECT_THAT(targets, ElementsAre('a', 'b', kEnd, kEnd, 'c', 'd', 'e', kEnd));
  EXPECT_EQ(data->train().text_bytes(), 5);
}

TEST_F(LanguageDataTest, AttentionAndPositionsStayInsideADocument) {
  spec().mutable_train()->set_sequence_length(8);
  Train("a.jsonl",
        "{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": \"cde\"}\n");
  ASSERT_OK_AND_ASSIGN(auto data, Prepare());
  MicroBatch batch = Sample(data->train(), 0);
  EXPECT_THAT(batch.tokens,
              ElementsAre(kEnd, 'a', 'b', kEnd, kEnd, 'c', 'd', 'e'));
  EXPECT_THAT(batch.segment_bounds, ElementsAre(0, 3, 4, 8));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 0, 0, 1, 2, 3));
  EXPECT_THAT(batch.sample_positions, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(batch.max_segment_rows, 4);

  spec().mutable_data()->set_attend_across_documents(true);
  ASSERT_OK_AND_ASSIGN(data, Prepare());
  batch = Sample(data->train(), 0);
  EXPECT_THAT(batch.segment_bounds, ElementsAre(0, 8));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(batch.max_segment_rows, 8);
}

TEST_F(LanguageDataTest, SamplesOfAMicroBatchFollowOneAnother) {
  Train("a.txt", "abcde");
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  MicroBatch batch;
  data->train().Append(1, 70, batch);
  data->train().Append(0, (int64_t{1} << 32) + 71, batch);
  EXPECT_THAT(batch.tokens, ElementsAre('d', 'e', kEnd, 'a', 'b', 'c'));
  EXPECT_THAT(batch.samples, ElementsAre(70, 70, 71, 71, 71, 71));
  EXPECT_THAT(batch.sample_bounds, ElementsAre(0, 2, 6));
  EXPECT_THAT(batch.segment_bounds, ElementsAre(0, 2, 6));
  EXPECT_THAT(batch.sample_positions, ElementsAre(0, 1, 0, 1, 2, 3));
  batch.Clear();
  data->train().Append(1, 0, batch);
  EXPECT_THAT(batch.segment_bounds, ElementsAre(0, 2));
}

TEST_F(LanguageDataTest, FewerTargetsThanASequenceIsAnError) {
  spec().mutable_train()->set_sequence_length(100);
  Train("a.txt", "short");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("train.sequence_length 100"),
                                        HasSubstr("data.train has 6"))));
}

TEST_F(LanguageDataTest, ValidationOfItsOwnPathIsRead) {
  Train("a.txt", "train text");
  Validation("v.txt", "ab\n");
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  ASSERT_NE(data->validation(), nullptr);
  EXPECT_EQ(data->validation()->targets(), 4);
  EXPECT_EQ(data->validation()->text_bytes(), 3);
  EXPECT_THAT(phases_, Contains("tokenizing"));
}

TEST_F(LanguageDataTest, AFractionOfOneTextIsItsLastLines) {
  Train("a.txt", "aaa\nbbb\nccc\nddd\neee\n");
  spec().mutable_data()->mutable_validation()->set_fraction(0.4);
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_EQ(data->train().text_bytes(), 12);
  EXPECT_EQ(data->validation()->text_bytes(), 8);
  EXPECT_THAT(Sample(*data->validation(), 0).tokens,
              ElementsAre(kEnd, 'd', 'd', 'd'));
}

TEST_F(LanguageDataTest, AFractionOfFilesIsWholeFiles) {
  for (int i = 0; i < 10; ++i) {
    dir_.Write("texts/" + std::to_string(i) + ".txt",
               std::string(static_cast<size_t>(i + 1), 'x'));
  }
  spec().mutable_data()->mutable_train()->add_path("texts");
  spec().mutable_data()->mutable_validation()->set_fraction(0.25);
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_EQ(data->train().text_bytes() + data->validation()->text_bytes(), 55);
  // Targets are bytes and one end a document.
  EXPECT_EQ(data->validation()->targets() - data->validation()->text_bytes(),
            2);
  EXPECT_EQ(data->train().targets() - data->train().text_bytes(), 8);
}

TEST_F(LanguageDataTest, AFractionDoesNotDependOnTheSeed) {
  std::string rows;
  for (int i = 0; i < 100; ++i) {
    rows += "{\"text\": \"row " + std::to_string(i) + "\"}\n";
  }
  Train("a.jsonl", rows);
  spec().mutable_data()->mutable_validation()->set_fraction(0.1);
  ASSERT_OK_AND_ASSIGN(const auto first, Prepare());
  spec().mutable_train()->set_seed(99);
  ASSERT_OK_AND_ASSIGN(const auto second, Prepare());
  EXPECT_EQ(first->digest(), second->digest());
}

TEST_F(LanguageDataTest, ATrainedTokenizerSeesTheTrainingPartOnly) {
  std::string text;
  const char* const words[] = {"the ", "same ", "few ", "words ", "again "};
  for (int i = 0; i < 2000; ++i) {
    text += words[(i * i + i / 7) % 5];
    if (i % 9 == 0) text += "\n";
  }
  Train("a.txt", text);
  Validation("v.txt", "zyxw zyxw zyxw\n");
  v1::TokenizerSpec& tokenizer = *spec().mutable_data()->mutable_tokenizer();
  tokenizer.set_kind(v1::TOKENIZER_KIND_SENTENCEPIECE);
  tokenizer.set_vocabulary(320);
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  // The five words are pieces, or nearly: a token or two a word, of 5 bytes.
  std::vector<int32_t> tokens;
  ASSERT_OK_AND_ASSIGN(const auto trained,
                       LoadTokenizer(data->tokenizer_files()));
  trained->Encode(text, tokens);
  EXPECT_LT(tokens.size(), text.size() / 2);
  // z, y, x are bytes: not one piece.
  EXPECT_GT(data->validation()->targets(), 12);
  EXPECT_THAT(phases_, Contains("training tokenizer"));
  EXPECT_THAT(data->tokenizer_files(), SizeIs(2));
  // The decoded stream is the text.
  std::string decoded;
  for (int64_t i = 0; i < data->validation()->samples(); ++i) {
    for (int32_t target : Sample(*data->validation(), i).targets) {
      ASSERT_OK_AND_ASSIGN(const std::string bytes, trained->DecodeOne(target));
      decoded += bytes;
    }
  }
  EXPECT_EQ(decoded, "zyxw zyxw zyxw\n");

  // What was trained can be given to another job.
  dir_.Write("given.model",
             dir_.Read(directory_.substr(dir_.path().size() + 1) +
                       "/tokenizer.model"));
  tokenizer.clear_vocabulary();
  tokenizer.set_path("given.model");
  ASSERT_OK_AND_ASSIGN(const auto given, Prepare());
  EXPECT_EQ(given->digest(), data->digest());
}

TEST_F(LanguageDataTest, AVocabularyThatTheTextCannotFillIsSmallerAndWarns) {
  Train("a.txt", "one two three four five six\n");
  v1::TokenizerSpec& tokenizer = *spec().mutable_data()->mutable_tokenizer();
  tokenizer.set_kind(v1::TOKENIZER_KIND_SENTENCEPIECE);
  tokenizer.set_vocabulary(5000);
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_LT(data->vocabulary(), 5000);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("gives only")));
}

TEST_F(LanguageDataTest, HuggingFaceTokenizersAreNotBuiltYet) {
  Train("a.txt", "one two three");
  spec().mutable_data()->mutable_tokenizer()->set_kind(
      v1::TOKENIZER_KIND_HUGGINGFACE);
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kUnimplemented,
                                  HasSubstr("not built yet")));
}

class TokenFileDataTest : public PreparedDataFixture {
 protected:
  TokenFileDataTest() { UseTokens(); }
};

TEST_F(TokenFileDataTest, WithoutAnEndTokenAllIsOneDocument) {
  Train("a.bin", Ids<uint16_t>({5, 6, 7}));
  Train("b.bin", Ids<uint16_t>({8, 9, 10}));
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_EQ(data->train().targets(), 5);
  EXPECT_EQ(data->train().text_bytes(), 0);
  EXPECT_EQ(data->vocabulary(), 11);
  EXPECT_THAT(data->tokenizer_files(), IsEmpty());
  const MicroBatch batch = Sample(data->train(), 0);
  EXPECT_THAT(batch.tokens, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(batch.targets, ElementsAre(6, 7, 8, 9));
  EXPECT_THAT(Sample(data->train(), 1).targets, ElementsAre(10));
}

TEST_F(TokenFileDataTest, AnEndTokenMarksDocumentsAndFramesTheStream) {
  spec().mutable_data()->set_end_token(0);
  spec().mutable_train()->set_sequence_length(8);
  Train("a.bin", Ids<uint16_t>({5, 6, 0, 7, 8}));
  spec().mutable_train()->set_sequence_length(6);
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  const MicroBatch batch = Sample(data->train(), 0);
  EXPECT_THAT(batch.tokens, ElementsAre(0, 5, 6, 0, 7, 8));
  EXPECT_THAT(batch.targets, ElementsAre(5, 6, 0, 7, 8, 0));
  EXPECT_THAT(batch.segment_bounds, ElementsAre(0, 3, 6));
  EXPECT_EQ(data->train().targets(), 6);
}

TEST_F(TokenFileDataTest, EndTokensThatAreThereAreNotDoubled) {
  spec().mutable_data()->set_end_token(0);
  Train("a.bin", Ids<uint16_t>({0, 5, 6, 0, 7, 8, 0}));
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_EQ(data->train().targets(), 6);
  EXPECT_THAT(Sample(data->train(), 0).tokens, ElementsAre(0, 5, 6, 0));
}

TEST_F(TokenFileDataTest, AFractionIsTheLastTokens) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 100; ++i) ids.push_back(70'000 + i);
  spec().mutable_data()->mutable_train()->set_dtype(v1::TOKEN_DTYPE_UINT32);
  Train("a.bin", Ids(ids));
  Train("b.bin", Ids(std::vector<uint32_t>{1, 2, 3, 4, 5}));
  spec().mutable_data()->mutable_validation()->set_fraction(0.1);
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_EQ(data->train().targets(), 94);
  EXPECT_EQ(data->validation()->targets(), 9);
  EXPECT_THAT(Sample(*data->validation(), 1).tokens,
              ElementsAre(70'099, 1, 2, 3));
  EXPECT_EQ(data->vocabulary(), 70'100);
}

TEST_F(TokenFileDataTest, TokensAreUsedInPlace) {
  Train("a.bin", Ids(std::vector<uint16_t>(100'000, 3)));
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    EXPECT_LT(entry.file_size(), 10'000u) << entry.path();
  }
}

TEST_F(TokenFileDataTest, BrokenTokenFilesAreNamed) {
  Train("a.bin", std::string("abc"));
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("a.bin: 3 bytes"),
                                        HasSubstr("no multiple of 2"))));
  spec().mutable_data()->clear_train();
  spec().mutable_model()->set_vocabulary(10);
  Train("b.bin", Ids<uint16_t>({1, 2, 9, 10, 3, 4}));
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("b.bin: token 3 is 10"),
                                        HasSubstr("model.vocabulary 10"))));
  spec().mutable_data()->clear_train();
  spec().mutable_model()->clear_vocabulary();
  spec().mutable_data()->mutable_train()->set_dtype(v1::TOKEN_DTYPE_UINT32);
  Train("c.bin", Ids<uint32_t>({1, 2, 0xffffffffu}));
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("token 2 is 4294967295")));
}

TEST_F(TokenFileDataTest, AnIdFarIntoALargeFileIsFound) {
  std::vector<uint16_t> ids(1'500'000, 1);
  ids[1'400'001] = 500;
  spec().mutable_model()->set_vocabulary(500);
  Train("a.bin", Ids(ids));
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("token 1400001 is 500")));
}

TEST_F(TokenFileDataTest, TokenFilesWithATokenizerAreRefused) {
  spec().mutable_data()->mutable_tokenizer()->set_kind(
      v1::TOKENIZER_KIND_BYTES);
  Train("a.bin", Ids<uint16_t>({1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("token ids already")));
}

TEST_F(TokenFileDataTest, AFileThatChangedSinceIsNoticedOnOpening) {
  Train("a.bin", Ids<uint16_t>({1, 2, 3, 4, 5, 6}));
  ASSERT_OK(Prepare());
  dir_.Write("a.bin", Ids<uint16_t>({1, 2, 3, 4, 5, 7}));
  EXPECT_THAT(PreparedData::Open(directory_, spec(), dir_.path()),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("a.bin"), HasSubstr("checksum"))));
}

}  // namespace
}  // namespace lockstep
