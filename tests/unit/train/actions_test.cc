#include "worker/train/actions.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tests/unit/train/train_fixture.h"
#include "worker/train/failure.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::InMemoryStore;
using testing::StatusIs;

class ActionsTest : public testing::TrainFixture {
 protected:
  absl::Status Evaluate(const std::string& checkpoint) {
    v1::Action& action = *spec().mutable_action();
    action.set_source_job("tiny-1");
    action.set_checkpoint(checkpoint);
    action.mutable_evaluate();
    InMemoryStore store;
    return RunAction(*context_, assignment_, store);
  }
  absl::Status EvaluateOn(const std::string& checkpoint,
                          const std::string& data) {
    spec().mutable_action()->mutable_evaluate()->mutable_data()->add_path(data);
    return Evaluate(checkpoint);
  }
  static std::string Ids(const std::vector<uint16_t>& ids) {
    std::string bytes(ids.size() * sizeof(uint16_t), '\0');
    std::memcpy(bytes.data(), ids.data(), bytes.size());
    return bytes;
  }
  // The job trains on token ids below 20.
  void UseTokens() {
    dir_.Write("train.bin", Ids({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    v1::DataSpec& data = *spec().mutable_data();
    data.mutable_train()->set_path(0, "train.bin");
    data.clear_validation();
    spec().mutable_model()->set_vocabulary(20);
  }
  // Replaces a part of the checkpoint's manifest that must be there.
  void EditManifest(const std::string& checkpoint, const std::string& from,
                    const std::string& to) {
    const std::string name =
        checkpoint.substr(dir_.path().size() + 1) + "/manifest.json";
    const std::string text = dir_.Read(name);
    const std::string edited = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(edited, text) << from << " is not in " << text;
    dir_.Write(name, edited);
  }
};

TEST_F(ActionsTest, EvaluatesOnTheJobsOwnValidationData) {
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  ASSERT_OK(Evaluate(checkpoint));
  EXPECT_GT(reporter_.reports.back().output().evaluation().loss(), 0.0);
}

TEST_F(ActionsTest, EvaluationOnChangedDataIsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  dir_.Write("valid.txt", "not what it was");
  const absl::Status status = Evaluate(checkpoint);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(checkpoint), HasSubstr("digest"))));
  EXPECT_EQ(CauseOf(status), v1::CAUSE_USER_ERROR);
}

TEST_F(ActionsTest, EvaluationOnOtherDataNeedsNoOldData) {
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  dir_.Write("train.txt", "gone");
  dir_.Write("other.txt", "another text still");
  EXPECT_OK(EvaluateOn(checkpoint, "other.txt"));
}

TEST_F(ActionsTest, ModelOfTokenIdsIsEvaluatedOnTokenIds) {
  UseTokens();
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  dir_.Write("other.bin", Ids({3, 1, 4, 1, 5, 9, 2, 6}));
  ASSERT_OK(EvaluateOn(checkpoint, "other.bin"));
  EXPECT_EQ(reporter_.reports.back().output().evaluation().targets(), 7);
}

TEST_F(ActionsTest, TokenIdBeyondTheModelsIsRefused) {
  UseTokens();
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  dir_.Write("other.bin", Ids({3, 1, 4, 1, 5, 9, 20}));
  EXPECT_THAT(
      EvaluateOn(checkpoint, "other.bin"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("other.bin")));
}

TEST_F(ActionsTest, ModelSmallerThanItsTokenIdsIsRefused) {
  UseTokens();
  const std::string large = dir_.Read("train.bin");
  dir_.Write("valid.bin", Ids({1, 2, 3, 4}));
  spec().mutable_data()->mutable_validation()->add_path("valid.bin");
  ASSERT_OK_AND_ASSIGN(const auto data, OpenData());
  dir_.Write("train.bin", Ids({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
  spec().mutable_model()->set_vocabulary(5);
  ASSERT_OK_AND_ASSIGN(const auto small, OpenData());
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  // It says that it was trained on the larger ids.
  EditManifest(checkpoint, small->digest(), data->digest());
  dir_.Write("train.bin", large);
  spec().mutable_model()->set_vocabulary(20);
  EXPECT_THAT(
      Evaluate(checkpoint),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr(checkpoint), HasSubstr("5 ids and 0 labels"))));
}

TEST_F(ActionsTest, ModelSmallerThanItsTokenizerIsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  EditManifest(checkpoint, "\"vocabulary\": \"257\"", "\"vocabulary\": \"30\"");
  EXPECT_THAT(Evaluate(checkpoint),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(checkpoint),
                             HasSubstr("model.vocabulary is 30"))));
}

TEST_F(ActionsTest, CheckpointOfAnImpossibleJobIsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::string checkpoint, Save());
  EditManifest(checkpoint, "\"heads\": \"2\"", "\"heads\": \"0\"");
  EXPECT_THAT(Evaluate(checkpoint),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(checkpoint), HasSubstr("model.heads"))));
}

}  // namespace
}  // namespace lockstep
