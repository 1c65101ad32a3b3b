// The cache as a directory: reuse, crashes, concurrent makers, damage.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/data/prepared_data_fixture.h"
#include "worker/data/cache_directory.h"

namespace lockstep {
namespace {

using ::lockstep::testing::PreparedDataFixture;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class TokenCacheTest : public PreparedDataFixture {
 protected:
  // A path below dir_ without it.
  std::string Inside(const std::string& path) const {
    return path.substr(dir_.path().size() + 1);
  }
  std::vector<std::string> FilesOf(const std::string& directory) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
};

TEST_F(TokenCacheTest, TheSameInputsAreTokenizedOnce) {
  Train("a.txt", "some text here");
  ASSERT_OK_AND_ASSIGN(const auto first, Prepare());
  EXPECT_THAT(phases_, Not(IsEmpty()));
  phases_.clear();
  ASSERT_OK_AND_ASSIGN(const auto second, Prepare());
  EXPECT_THAT(phases_, IsEmpty());
  EXPECT_EQ(first->digest(), second->digest());
  EXPECT_THAT(Cached(), SizeIs(1));
}

TEST_F(TokenCacheTest, FractionCountsWithAllItsDigits) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "a\n";
  Train("a.txt", text);
  const auto set = [this](double fraction) {
    spec().mutable_data()->mutable_validation()->set_fraction(fraction);
  };
  set(0.123456);
  ASSERT_OK(Prepare());
  const std::string directory = directory_;
  set(0.1234561);
  ASSERT_OK(Prepare());
  EXPECT_NE(directory_, directory);
}

TEST_F(TokenCacheTest, HugeTokenizerModelIsRefusedUnread) {
  Train("a.txt", "some text here");
  dir_.Write("huge.model", "");
  std::filesystem::resize_file(dir_.File("huge.model"), (64 << 20) + 1);
  v1::TokenizerSpec& tokenizer = *spec().mutable_data()->mutable_tokenizer();
  tokenizer.set_kind(v1::TOKENIZER_KIND_SENTENCEPIECE);
  tokenizer.set_path("huge.model");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("want at most 67108864")));
}

TEST_F(TokenCacheTest, ChangedInputsOrSettingsMakeAnotherCache) {
  Train("a.txt", "some text here");
  ASSERT_OK_AND_ASSIGN(const auto first, Prepare());
  const std::string directory = directory_;
  dir_.Write("a.txt", "other text here");
  ASSERT_OK_AND_ASSIGN(const auto second, Prepare());
  EXPECT_NE(directory_, directory);
  EXPECT_NE(first->digest(), second->digest());
  // Settings that don't matter to it don't.
  spec().mutable_train()->set_seed(5);
  spec().mutable_train()->set_sequence_length(2);
  const std::string same = directory_;
  ASSERT_OK(Prepare());
  EXPECT_EQ(directory_, same);
}

TEST_F(TokenCacheTest, TheDigestIsOfContentsNotOfNames) {
  Train("a.txt", "some text here");
  ASSERT_OK_AND_ASSIGN(const auto first, Prepare());
  spec().mutable_data()->clear_train();
  Train("b.txt", "some text here");
  ASSERT_OK_AND_ASSIGN(const auto second, Prepare());
  EXPECT_EQ(first->digest(), second->digest());
}

TEST_F(TokenCacheTest, NothingTemporaryIsLeft) {
  Train("a.txt", "some text here");
  ASSERT_OK(Prepare());
  EXPECT_THAT(Cached(), SizeIs(1));
  Train("b.jsonl", "broken");
  spec().mutable_data()->mutable_train()->set_format(v1::DATA_FORMAT_JSONL);
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Cached(), SizeIs(1));
}

TEST_F(TokenCacheTest, ACrashedMakersFolderIsRemovedAndALivingOnesIsNot) {
  Train("a.txt", "some text here");
  std::filesystem::create_directories(options_.cache_dir + "/.tmp-crash");
  ASSERT_OK_AND_ASSIGN(const auto living,
                       CacheDirectory::Create(options_.cache_dir));
  std::filesystem::create_directories(options_.cache_dir + "/.tmp-crash");
  ASSERT_OK(Prepare());
  EXPECT_TRUE(std::filesystem::exists(living->path()));
  EXPECT_FALSE(std::filesystem::exists(options_.cache_dir + "/.tmp-crash"));
}

TEST_F(TokenCacheTest, MakersAtTheSameTimeAgree) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "line " + std::to_string(i) + "\n";
  Train("a.txt", text);
  options_.progress = nullptr;
  std::vector<absl::StatusOr<std::string>> made(6, std::string());
  std::vector<std::thread> makers;
  for (auto& result : made) {
    makers.emplace_back([this, &result] { result = PrepareCache(options_); });
  }
  for (std::thread& maker : makers) maker.join();
  for (const auto& result : made) {
    ASSERT_OK(result);
    EXPECT_EQ(*result, *made[0]);
    EXPECT_OK(PreparedData::Open(*result, spec(), dir_.path()));
  }
  EXPECT_THAT(Cached(), SizeIs(1));
}

TEST_F(TokenCacheTest, ADamagedCacheIsMadeAnew) {
  Train("a.txt", "some text here");
  ASSERT_OK_AND_ASSIGN(const auto first, Prepare());
  dir_.Write(Inside(directory_) + "/train.tokens", "xx");
  EXPECT_THAT(PreparedData::Open(directory_, spec(), dir_.path()),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("train.tokens"), HasSubstr("2 bytes"))));
  ASSERT_OK_AND_ASSIGN(const auto second, Prepare());
  EXPECT_EQ(first->digest(), second->digest());
  std::filesystem::remove_all(directory_);
  std::filesystem::create_directories(directory_);
  ASSERT_OK(Prepare());
  std::filesystem::remove_all(directory_);
  dir_.Write(Inside(directory_), "a file in its place");
  ASSERT_OK(Prepare());
  EXPECT_THAT(Cached(), SizeIs(1));
}

TEST_F(TokenCacheTest, EveryDamagedByteIsNoticed) {
  spec().set_task(v1::TASK_CLASSIFICATION);
  Train("a.csv", "text,label\nab,x\ncd,y\n");
  ASSERT_OK(Prepare());
  std::mt19937 random(4);
  for (const std::string& file : FilesOf(directory_)) {
    const std::string name = Inside(file);
    const std::string good = dir_.Read(name);
    for (int round = 0; round < 60; ++round) {
      std::string bad = good;
      switch (round % 3) {
        case 0:
          bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
          break;
        case 1:
          bad.resize(random() % bad.size());
          break;
        default:
          bad.insert(random() % bad.size(), 1, static_cast<char>(random()));
      }
      dir_.Write(name, bad);
      const auto opened = PreparedData::Open(directory_, spec(), dir_.path());
      // A manifest may change in white space only.
      if (!opened.ok()) {
        EXPECT_THAT(opened, StatusIs(absl::StatusCode::kDataLoss)) << name;
      } else {
        EXPECT_THAT(name, HasSubstr("manifest.json"));
      }
    }
    dir_.Write(name, good);
  }
  EXPECT_OK(PreparedData::Open(directory_, spec(), dir_.path()));
}

TEST_F(TokenCacheTest, AFullDiskIsSaidWithPathAndBytes) {
  Train("a.txt", std::string(3 << 20, 'x'));
  // In a process of its own: the limit on file sizes is the process's.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    options_.progress = nullptr;
    const absl::Status status = PrepareCache(options_).status();
    const bool right =
        status.code() == absl::StatusCode::kResourceExhausted &&
        status.message().find("train.tokens") != absl::string_view::npos &&
        status.message().find("bytes") != absl::string_view::npos;
    _exit(right ? 0 : 1);
  }
  int code = 0;
  ASSERT_EQ(waitpid(child, &code, 0), child);
  EXPECT_EQ(code, 0);
  EXPECT_THAT(Cached(), IsEmpty());
}

TEST_F(TokenCacheTest, MissingInputsAreNotFound) {
  spec().mutable_data()->mutable_train()->add_path("nowhere.txt");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kNotFound,
                                  HasSubstr(dir_.File("nowhere.txt"))));
}

TEST_F(TokenCacheTest, InputsOutsideTheDataRootAreRefused) {
  spec().mutable_data()->mutable_train()->add_path("/etc/passwd");
  spec().mutable_data()->mutable_train()->set_format(v1::DATA_FORMAT_TEXT);
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kPermissionDenied,
                                  HasSubstr("not under the data root")));
}

}  // namespace
}  // namespace lockstep
