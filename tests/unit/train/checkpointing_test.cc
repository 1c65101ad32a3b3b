#include "worker/train/checkpointing.h"

#include <filesystem>
#include <string>

#include "tests/unit/train/train_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::StatusIs;

class CheckpointingTest : public testing::TrainFixture {
 protected:
  absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& path) {
    return CheckpointReader::Open(path, [this] { ++signs_of_life_; });
  }

  int signs_of_life_ = 0;
};

TEST_F(CheckpointingTest, SavingAndLoadingSayThatTheyGoOn) {
  ASSERT_OK_AND_ASSIGN(const std::string path, Save());
  EXPECT_THAT(reporter_.phases, Contains("saving"));
  ASSERT_OK_AND_ASSIGN(const auto reader, Open(path));
  EXPECT_GT(signs_of_life_, 0);
  ASSERT_OK_AND_ASSIGN(TrainingState state, MakeState(257, Purpose::kTrain));
  reporter_.phases.clear();
  EXPECT_OK(LoadCheckpoint(*context_, *reader, state));
  EXPECT_THAT(reporter_.phases, Contains("loading"));
}

TEST_F(CheckpointingTest, TensorOfAnotherShapeIsNamedWithBoth) {
  ASSERT_OK_AND_ASSIGN(const std::string path, Save());
  ASSERT_OK_AND_ASSIGN(const auto reader, Open(path));
  spec().mutable_model()->set_width(64);
  ASSERT_OK_AND_ASSIGN(TrainingState state, MakeState(257, Purpose::kUse));
  EXPECT_THAT(LoadCheckpoint(*context_, *reader, state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(path), HasSubstr("(257, 16)"),
                             HasSubstr("the model's has (257, 64)"))));
}

TEST_F(CheckpointingTest, ChangedDataAreRefusedWithBothDigests) {
  ASSERT_OK_AND_ASSIGN(const std::string path, Save());
  ASSERT_OK_AND_ASSIGN(const auto reader, Open(path));
  dir_.Write("train.txt", "a text that is not what it was before");
  ASSERT_OK_AND_ASSIGN(const auto data, OpenData());
  EXPECT_THAT(CheckSameData(*reader, spec(), *data),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("train.txt"), HasSubstr(path),
                             HasSubstr(data->digest()),
                             HasSubstr(reader->manifest().data_digest()))));
}

TEST_F(CheckpointingTest, TouchedDataAreTheSame) {
  ASSERT_OK_AND_ASSIGN(const std::string path, Save());
  ASSERT_OK_AND_ASSIGN(const auto reader, Open(path));
  const std::string file = dir_.File("train.txt");
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(file) + std::chrono::hours(1));
  ASSERT_OK_AND_ASSIGN(const auto data, OpenData());
  EXPECT_OK(CheckSameData(*reader, spec(), *data));
}

}  // namespace
}  // namespace lockstep
