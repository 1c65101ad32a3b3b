#include "worker/data/tokenizer_files.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/data/tokenizer_fixture.h"
#include "worker/data/tokenizer.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Encode;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::Prose;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::Trained;
using ::lockstep::testing::TrainedModel;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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
