#include "common/address.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

TEST(AddressTest, PrintsWhatItReads) {
  for (const std::string text :
       {"127.0.0.1:7700", "[::1]:0", "train-3.example.org:65535"}) {
    ASSERT_OK_AND_ASSIGN(const Address address, ParseAddress(text));
    EXPECT_EQ(address.ToString(), text);
  }
}

TEST(AddressTest, LoopbackIsRecognised) {
  EXPECT_TRUE(ParseAddress("127.9.9.9:1")->IsLoopback());
  EXPECT_TRUE(ParseAddress("localhost:1")->IsLoopback());
  EXPECT_TRUE(ParseAddress("[::1]:1")->IsLoopback());
  EXPECT_FALSE(ParseAddress("0.0.0.0:1")->IsLoopback());
  EXPECT_FALSE(ParseAddress("128.0.0.1:1")->IsLoopback());
  EXPECT_FALSE(ParseAddress("127.example.org:1")->IsLoopback());
  EXPECT_FALSE(ParseAddress("[::]:1")->IsLoopback());
}

class BadAddressTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BadAddressTest, IsRefusedWithTheText) {
  EXPECT_THAT(ParseAddress(GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'" + GetParam() + "'")));
}

INSTANTIATE_TEST_SUITE_P(Texts, BadAddressTest,
                         ::testing::Values("", "host", ":7700", "host:",
                                           "host:65536", "host:-1", "::1:7700",
                                           "[::1:7700", "host:12x"));

}  // namespace
}  // namespace lockstep
