#include "worker/data/byte_tokenizer.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/data/tokenizer_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Encode;
using ::lockstep::testing::ExpectLosslessOverRandomTexts;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::Eq;

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

}  // namespace
}  // namespace lockstep
