#include "common/ids.h"

#include <set>
#include <string>
#include <type_traits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(RandomBase32Test, UsesOnlyItsAlphabetAndDoesNotRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = RandomBase32(12);
    EXPECT_EQ(id.size(), 12u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdefghjkmnpqrstvwxyz"),
              std::string::npos);
    EXPECT_TRUE(seen.insert(id).second) << id;
  }
}

TEST(StringIdTest, IdsOfDifferentKindsDoNotCompare) {
  EXPECT_FALSE((std::is_convertible_v<JobId, WorkerName>));
  EXPECT_LT(JobId("a"), JobId("b"));
  EXPECT_EQ(JobId("a"), JobId("a"));
}

}  // namespace
}  // namespace lockstep
