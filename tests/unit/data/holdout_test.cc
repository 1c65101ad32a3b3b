#include "worker/data/holdout.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::HasSubstr;

int64_t CountOf(const DataPart& part, int64_t documents) {
  int64_t count = 0;
  for (int64_t i = 0; i < documents; ++i) count += part.Contains(i);
  return count;
}

TEST(HoldoutTest, HoldsOutTheFloorOfTheFraction) {
  for (int64_t documents : {20, 31, 100, 1000, 31102}) {
    for (double fraction : {0.05, 0.1, 1.0 / 3.0, 0.9}) {
      ASSERT_OK_AND_ASSIGN(const Holdout split,
                           HoldOutDocuments(documents, fraction));
      const auto held_out =
          static_cast<int64_t>(fraction * static_cast<double>(documents));
      EXPECT_EQ(CountOf(split.validation, documents), held_out);
      EXPECT_EQ(CountOf(split.train, documents), documents - held_out);
    }
  }
}

TEST(HoldoutTest, AnEmptySideIsAnError) {
  EXPECT_THAT(HoldOutDocuments(10, 0.05),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0.05 of 10 documents holds out 0")));
}

TEST(HoldoutTest, TheTailOfTokensIsHeldOut) {
  ASSERT_OK_AND_ASSIGN(const Holdout split, HoldOutTail(1001, 0.1));
  EXPECT_EQ(split.train.range()->first, 0);
  EXPECT_EQ(split.train.range()->last, 901);
  EXPECT_EQ(split.validation.range()->first, 901);
  EXPECT_EQ(split.validation.range()->last, 1001);
}

class LineHoldoutTest : public ::testing::Test {
 protected:
  absl::StatusOr<Holdout> Split(const std::string& text, double fraction) {
    dir_.Write("a.txt", text);
    v1::DataSource source;
    source.add_path("a.txt");
    ASSIGN_OR_RETURN(const DataRoot root, DataRoot::Open(dir_.path()));
    ASSIGN_OR_RETURN(const Inputs inputs, FindInputs(root, source, "data"));
    return HoldOutLines(root, inputs, fraction);
  }
  TempDir dir_;
};

TEST_F(LineHoldoutTest, TheCutIsAtALineStart) {
  // Offsets of lines: 0, 4, 8, 12, 16.
  const std::string text = "aaa\nbbb\nccc\nddd\neee\n";
  ASSERT_OK_AND_ASSIGN(Holdout split, Split(text, 0.3));  // 6 bytes: from 14
  EXPECT_EQ(split.train.range()->last, 16);
  EXPECT_EQ(split.validation.range()->first, 16);
  EXPECT_EQ(split.validation.range()->last, 20);
  ASSERT_OK_AND_ASSIGN(split, Split(text, 0.4));  // 8 bytes: from 12
  EXPECT_EQ(split.train.range()->last, 12);
}

TEST_F(LineHoldoutTest, ALongLastLineIsHeldOutWhole) {
  const std::string text = "aaa\n" + std::string(200'000, 'b');
  ASSERT_OK_AND_ASSIGN(const Holdout split, Split(text, 0.1));
  EXPECT_EQ(split.train.range()->last, 4);
}

TEST_F(LineHoldoutTest, LinesLongerThanABlockAreFound) {
  std::string text(300'000, 'a');
  text.append("\n").append(150'000, 'b').append("\nccc\n");
  ASSERT_OK_AND_ASSIGN(const Holdout split, Split(text, 0.2));
  EXPECT_EQ(split.train.range()->last, 450'002);
}

TEST_F(LineHoldoutTest, OneLineCannotBeSplit) {
  std::string one_line(1000, 'a');
  one_line.push_back('\n');
  EXPECT_THAT(Split(one_line, 0.1), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("is one line")));
}

}  // namespace
}  // namespace lockstep
