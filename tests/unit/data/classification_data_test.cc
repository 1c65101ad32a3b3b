// Classification data from files to micro-batches, and data of evaluations.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/data/prepared_data_fixture.h"
#include "worker/data/byte_tokenizer.h"

namespace lockstep {
namespace {

using ::lockstep::testing::PreparedDataFixture;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kEnd = 256;

class ClassificationDataTest : public PreparedDataFixture {
 protected:
  ClassificationDataTest() { spec().set_task(v1::TASK_CLASSIFICATION); }
};

TEST_F(ClassificationDataTest, ARowIsASampleWithItsClassAsTarget) {
  Train("a.csv", "text,label\nab,pear\n,apple\nxyz,pear\n");
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_THAT(data->labels(), ElementsAre("apple", "pear"));
  const Dataset& train = data->train();
  EXPECT_EQ(train.samples(), 3);
  EXPECT_EQ(train.targets(), 3);
  EXPECT_EQ(train.ValidTargets(0), 1);
  EXPECT_EQ(train.text_bytes(), 5);
  MicroBatch batch;
  train.Append(0, 10, batch);
  train.Append(1, 11, batch);
  train.Append(2, 12, batch);
  EXPECT_THAT(batch.tokens,
              ElementsAre(kEnd, 'a', 'b', kEnd, kEnd, 'x', 'y', 'z'));
  EXPECT_THAT(batch.targets, ElementsAre(1, 0, 1));
  EXPECT_THAT(batch.sample_bounds, ElementsAre(0, 3, 4, 8));
  EXPECT_THAT(batch.segment_bounds, ElementsAre(0, 3, 4, 8));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 0, 0, 1, 2, 3));
  EXPECT_THAT(batch.samples, ElementsAre(10, 10, 10, 11, 12, 12, 12, 12));
  EXPECT_EQ(batch.max_segment_rows, 4);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(ClassificationDataTest, LongRowsKeepTheirFirstTokensAndAreCounted) {
  Train("a.csv", "text,label\nabcdefgh,x\nab,y\nabcd,y\n");
  ASSERT_OK_AND_ASSIGN(auto data, Prepare());
  EXPECT_THAT(Sample(data->train(), 0).tokens,
              ElementsAre(kEnd, 'a', 'b', 'c'));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("2 of 3 rows cut to 4 tokens")));
  // Said again for a cache that is there; and another length is another cache.
  ASSERT_OK_AND_ASSIGN(data, Prepare());
  EXPECT_EQ(warnings_.size(), 2u);
  spec().mutable_train()->set_sequence_length(20);
  ASSERT_OK_AND_ASSIGN(data, Prepare());
  EXPECT_EQ(warnings_.size(), 2u);
  EXPECT_EQ(Sample(data->train(), 0).rows(), 9);
}

TEST_F(ClassificationDataTest, AnUnknownValidationLabelNamesItsLine) {
  Train("a.csv", "text,label\na,x\nb,y\n");
  Validation("v.csv", "text,label\na,x\n\"b\nc\",z\n");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("v.csv:3: the label \"z\""),
                                        HasSubstr("x, y"))));
}

TEST_F(ClassificationDataTest, ALongUnknownLabelIsCutInTheMessage) {
  Train("a.csv", "text,label\na,x\nb,y\n");
  Validation("v.csv", "text,label\na," + std::string(5000, 'z') + "\n");
  const absl::Status status = Prepare().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("zzz...\" is none of")));
  EXPECT_LT(status.message().size(), 500);
}

TEST_F(ClassificationDataTest, KeysOfTheSourceAreUsed) {
  v1::DataSpec& sources = *spec().mutable_data();
  sources.mutable_train()->set_text("body");
  sources.mutable_train()->set_label("kind");
  Train("a.jsonl",
        "{\"body\": \"ab\", \"kind\": 2}\n"
        "{\"body\": \"c\", \"kind\": 10}\n");
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  // Sorted as text.
  EXPECT_THAT(data->labels(), ElementsAre("10", "2"));
  EXPECT_THAT(Sample(data->train(), 0).targets, ElementsAre(1));
}

TEST_F(ClassificationDataTest, AFractionTakesItsLabelsFromTheTrainingPart) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 60; ++i) {
    rows += "row " + std::to_string(i) + "," + (i % 2 == 0 ? "a" : "b") + "\n";
  }
  Train("a.csv", rows);
  spec().mutable_train()->set_sequence_length(16);
  spec().mutable_data()->mutable_validation()->set_fraction(0.2);
  ASSERT_OK_AND_ASSIGN(const auto data, Prepare());
  EXPECT_EQ(data->train().samples(), 48);
  EXPECT_EQ(data->validation()->samples(), 12);
  EXPECT_THAT(data->labels(), ElementsAre("a", "b"));
}

TEST_F(ClassificationDataTest, TextHasNoLabels) {
  Train("a.txt", "text");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("text, which has no labels")));
}

TEST_F(ClassificationDataTest, AHeaderAloneIsNoData) {
  Train("a.csv", "text,label\n");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("holds no rows")));
}

TEST_F(ClassificationDataTest, OtherDataIsEvaluatedWithTheLabelsOfTraining) {
  dir_.Write("e.csv", "text,label\nab,y\nlonger,x\n");
  v1::DataSource source;
  source.add_path("e.csv");
  const ByteTokenizer tokenizer;
  ASSERT_OK_AND_ASSIGN(
      const auto data,
      OpenEvaluationData(options_, source, &tokenizer, {"x", "y"}));
  EXPECT_EQ(data->samples(), 2);
  EXPECT_THAT(Sample(*data, 0).targets, ElementsAre(1));
  EXPECT_THAT(Sample(*data, 1).tokens, ElementsAre(kEnd, 'l', 'o', 'n'));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("1 of 2 rows cut")));
  EXPECT_THAT(OpenEvaluationData(options_, source, &tokenizer, {"x", "z"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("e.csv:2: the label \"y\"")));
}

TEST_F(ClassificationDataTest, OtherTextIsEvaluatedAsALanguage) {
  spec().set_task(v1::TASK_LANGUAGE_MODEL);
  dir_.Write("e.txt", "abc\n");
  v1::DataSource source;
  source.add_path("e.txt");
  const ByteTokenizer tokenizer;
  for (int i = 0; i < 2; ++i) {  // made, then found
    ASSERT_OK_AND_ASSIGN(const auto data,
                         OpenEvaluationData(options_, source, tokenizer, {}));
    EXPECT_EQ(data->targets(), 5);
    EXPECT_EQ(data->text_bytes(), 4);
  }
  EXPECT_EQ(Cached().size(), 1u);
}

TEST_F(ClassificationDataTest, OtherTokensAreEvaluatedWithinTheVocabulary) {
  spec().set_task(v1::TASK_LANGUAGE_MODEL);
  UseTokens();
  dir_.Write("e.bin", Ids<uint16_t>({1, 2, 9}));
  v1::DataSource source;
  source.add_path("e.bin");
  spec().mutable_model()->set_vocabulary(9);
  EXPECT_THAT(
      OpenEvaluationData(options_, source, nullptr, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token 2 is 9")));
  spec().mutable_model()->set_vocabulary(10);
  ASSERT_OK_AND_ASSIGN(const auto data,
                       OpenEvaluationData(options_, source, nullptr, {}));
  EXPECT_EQ(data->targets(), 2);
  const ByteTokenizer tokenizer;
  EXPECT_THAT(OpenEvaluationData(options_, source, &tokenizer, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("trained on text")));
}

}  // namespace
}  // namespace lockstep
