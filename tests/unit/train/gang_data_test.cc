#include "worker/train/gang_data.h"

#include <string>
#include <vector>

#include "tests/unit/train/train_fixture.h"
#include "worker/train/failure.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::InMemoryStore;
using testing::StatusIs;

class SecondRank : public LocalProcessGroup {
 public:
  using LocalProcessGroup::LocalProcessGroup;
  int rank() const override { return 1; }
};

// A store whose coordinator is away for the first few calls.
class AwayStore : public InMemoryStore {
 public:
  explicit AwayStore(int calls) : calls_left_(calls) {}
  absl::StatusOr<std::vector<std::string>> Get(
      const std::vector<std::string>& keys, absl::Duration timeout) override {
    if (calls_left_-- > 0) return absl::UnavailableError("stayed away");
    return InMemoryStore::Get(keys, timeout);
  }

 private:
  int calls_left_;
};

class GangDataTest : public testing::TrainFixture {
 protected:
  // Rank 0 makes the cache; its directory.
  std::string Publish(Store& store) {
    FillDefaults(spec());
    EXPECT_OK(OpenGangData(*context_, assignment_, store));
    const auto published = store.Get({"data/directory"}, absl::ZeroDuration());
    return published.ok() ? published->front() : "";
  }
  RankContext second() {
    return {
        OneRankGroups(second_), *device_, {}, {1, 2}, reporter_, RealClock()};
  }

  SecondRank second_{"world"};
};

TEST_F(GangDataTest, OtherRanksWaitOutAnAbsentCoordinator) {
  InMemoryStore made;
  const std::string directory = Publish(made);
  ASSERT_OK_AND_ASSIGN(const auto data, OpenData());
  AwayStore store(2);
  ASSERT_OK(store.Set("data/directory", directory));
  ASSERT_OK(store.Set("data/digest", data->digest()));
  EXPECT_OK(OpenGangData(second(), assignment_, store));
}

TEST_F(GangDataTest, DamagedCacheIsNoCorruptCheckpoint) {
  InMemoryStore store;
  const std::string directory = Publish(store);
  ASSERT_FALSE(directory.empty());
  dir_.Write(directory.substr(dir_.path().size() + 1) + "/train.tokens", "x");
  const absl::Status status =
      OpenGangData(second(), assignment_, store).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("train.tokens")));
  EXPECT_EQ(CauseOf(status), v1::CAUSE_USER_ERROR);
}

}  // namespace
}  // namespace lockstep
