#include "common/bytes.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

uint64_t Bytes(std::string_view text) {
  auto bytes = ParseBytes(text);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or(0);
}

TEST(ParseBytesTest, PowersOf1000And1024AreKeptApart) {
  EXPECT_EQ(Bytes("512MiB"), uint64_t{512} << 20);
  EXPECT_EQ(Bytes("80GB"), uint64_t{80'000'000'000});
  EXPECT_EQ(Bytes("1 TiB"), uint64_t{1} << 40);
  EXPECT_EQ(Bytes("12"), 12u);
  EXPECT_EQ(Bytes("12B"), 12u);
  EXPECT_EQ(Bytes("18446744073709551615"), UINT64_MAX);
}

TEST(ParseBytesTest, FractionIsRoundedDownToBytes) {
  EXPECT_EQ(Bytes("1.5KiB"), 1536u);
  EXPECT_EQ(Bytes("0.3B"), 0u);
}

class BadSizeTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BadSizeTest, IsRefusedWithTheText) {
  const auto bytes = ParseBytes(GetParam());
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Texts, BadSizeTest,
                         ::testing::Values("", "GiB", "-1", "5 gib", "1.2.3MB",
                                           "5Gbit", "18446744073709551616",
                                           "99999999PiB", "1e400", "."));

TEST(FormatBytesTest, KeepsThreeDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(412), "412 B");
  EXPECT_EQ(FormatBytes(uint64_t{512} << 20), "512 MiB");
  EXPECT_EQ(FormatBytes((uint64_t{3} << 30) / 2), "1.50 GiB");
  EXPECT_EQ(FormatBytes((uint64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(FormatBytes((uint64_t{1} << 30) / 100 * 12), "123 MiB");
}

TEST(FormatBytesExactTest, IsReadBackAsTheSameNumber) {
  for (uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{1234567}, uint64_t{80'000'000'000},
        uint64_t{512} << 20, uint64_t{3} << 50, UINT64_MAX}) {
    EXPECT_EQ(Bytes(FormatBytesExact(bytes)), bytes);
  }
  EXPECT_EQ(FormatBytesExact(uint64_t{512} << 20), "512MiB");
  EXPECT_EQ(FormatBytesExact(uint64_t{80'000'000'000}), "80GB");
}

TEST(ParseDurationTest, CombinesUnits) {
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("15s"), absl::Seconds(15));
  EXPECT_EQ(*ParseDuration("500ms"), absl::Milliseconds(500));
}

TEST(ParseDurationTest, NegativeInfiniteAndUnitlessAreRefused) {
  for (const std::string text : {"-1s", "inf", "15", "", "1 fortnight"}) {
    const auto duration = ParseDuration(text);
    EXPECT_EQ(duration.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_THAT(std::string(duration.status().message()),
                HasSubstr("as in 15s"));
  }
}

TEST(ParseDurationTest, ReadsWhatAbseilPrints) {
  for (absl::Duration time : {absl::ZeroDuration(), absl::Seconds(15),
                              absl::Minutes(90), absl::Milliseconds(1500)}) {
    EXPECT_EQ(*ParseDuration(absl::FormatDuration(time)), time);
  }
}

}  // namespace
}  // namespace lockstep
