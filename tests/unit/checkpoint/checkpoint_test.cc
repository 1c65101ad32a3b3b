#include "worker/checkpoint/checkpoint.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::NamedTensor;
using testing::SmallManifest;
using testing::SmallModel;
using testing::StatusIs;
using testing::TempDir;
using testing::WriteShards;
using testing::WriteSmallCheckpoint;

class CheckpointRanksTest : public ::testing::TestWithParam<int> {};

TEST_P(CheckpointRanksTest, EveryRangeOfEveryTensorReadsBack) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint finished,
                       WriteSmallCheckpoint(job_dir, GetParam()));
  EXPECT_EQ(finished.path, job_dir.File("step-40.g2"));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(finished.path));
  for (const NamedTensor& tensor : SmallModel()) {
    ASSERT_TRUE(reader->Contains(tensor.name, tensor.kind));
    const int64_t elements = tensor.values.size();
    for (int64_t begin = 0; begin <= elements; ++begin) {
      for (int64_t end = begin; end <= elements; ++end) {
        std::vector<float> got(end - begin);
        ASSERT_OK(reader->Read(tensor.name, tensor.kind, {}, begin,
                               absl::MakeSpan(got)));
        ASSERT_THAT(got, ElementsAreArray(tensor.values.begin() + begin,
                                          tensor.values.begin() + end))
            << tensor.kind << " of " << tensor.name << " from " << begin;
      }
    }
  }
}

// One rank, several, and more than the smallest tensor has elements.
INSTANTIATE_TEST_SUITE_P(Ranks, CheckpointRanksTest,
                         ::testing::Values(1, 2, 3, 8));

TEST(CheckpointTest, ManifestKeepsWhatTheJobSaid) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint finished,
                       WriteSmallCheckpoint(job_dir, 2));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(finished.path));
  EXPECT_EQ(reader->manifest().job(), "kjv-1a2b");
  EXPECT_EQ(reader->manifest().step(), 40);
  EXPECT_EQ(reader->manifest().data_position(), 1280);
  EXPECT_EQ(reader->manifest().spec().name(), "kjv");
  EXPECT_EQ(reader->manifest().format_version(), 1);
  ASSERT_EQ(reader->tokenizer_files().size(), 1u);
  EXPECT_EQ(reader->tokenizer_files()[0], finished.path + "/tokenizer.model");
  EXPECT_EQ(job_dir.Read("step-40.g2/tokenizer.model"), "a tokenizer");
}

TEST(CheckpointTest, BytesAreThoseOfAllFiles) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint finished,
                       WriteSmallCheckpoint(job_dir, 3));
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(finished.path)) {
    bytes += file.file_size();
  }
  EXPECT_EQ(finished.bytes, bytes);
}

TEST(CheckpointTest, ShapesAreThoseOfWholeTensors) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint finished,
                       WriteSmallCheckpoint(job_dir, 3));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(finished.path));
  EXPECT_THAT(reader->Shape("blocks.0.q.weight", "first_moment"),
              ElementsAre(7, 3));
  EXPECT_THAT(reader->Shape("head.bias", "parameter"), ElementsAre(5));
}

// A gang of a thousand ranks writes more files than a process may have open.
TEST(CheckpointTest, MoreShardsThanOpenFilesReadBack) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint finished,
                       WriteSmallCheckpoint(job_dir, 40));
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit few = old;
  few.rlim_cur = 30;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto reader = CheckpointReader::Open(finished.path);
  std::vector<float> values(21);
  absl::Status read = reader.status();
  if (reader.ok()) {
    read = (*reader)->Read("blocks.0.q.weight", "parameter", {}, 0,
                           absl::MakeSpan(values));
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_OK(read);
  EXPECT_EQ(values, SmallModel()[0].values);
}

// Three ranks hold 2, 3 and 2 columns, each cut in two; any columns are read.
TEST(CheckpointTest, ColumnBlocksReadBackInAnyOtherColumns) {
  const TempDir job_dir;
  constexpr int64_t kRows = 5, kColumns = 7;
  std::vector<float> whole(kRows * kColumns);
  std::iota(whole.begin(), whole.end(), 1.0f);
  const std::vector<int64_t> cuts = {0, 2, 5, 7};
  std::vector<ShardDescription> shards;
  for (int rank = 0; rank < 3; ++rank) {
    const int64_t begin = cuts[rank], count = cuts[rank + 1] - cuts[rank];
    std::vector<float> block;
    for (int64_t row = 0; row < kRows; ++row) {
      const float* from = whole.data() + row * kColumns + begin;
      block.insert(block.end(), from, from + count);
    }
    const ColumnRange columns = {begin, count};
    const int64_t half = static_cast<int64_t>(block.size()) / 2;
    const std::vector<TensorSlice> slices = {
        {"w",
         "parameter",
         {kRows, kColumns},
         0,
         absl::MakeConstSpan(block).subspan(0, half),
         columns},
        {"w",
         "parameter",
         {kRows, kColumns},
         half,
         absl::MakeConstSpan(block).subspan(half),
         columns}};
    ASSERT_OK_AND_ASSIGN(
        shards.emplace_back(),
        WriteShard(TemporaryCheckpointPath(job_dir.path(), 40, 2), rank,
                   slices));
  }
  ASSERT_OK_AND_ASSIGN(
      const FinishedCheckpoint finished,
      FinishCheckpoint(job_dir.path(), SmallManifest(), shards, {}));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(finished.path));
  EXPECT_EQ(reader->manifest().format_version(), 2);
  for (int64_t begin = 0; begin < kColumns; ++begin) {
    for (int64_t count = 1; count <= kColumns - begin; ++count) {
      for (int64_t first = 0; first <= kRows * count; ++first) {
        const int64_t elements = std::min<int64_t>(4, kRows * count - first);
        std::vector<float> got(elements), want;
        for (int64_t e = first; e < first + elements; ++e) {
          want.push_back(whole[e / count * kColumns + begin + e % count]);
        }
        ASSERT_OK(reader->Read("w", "parameter", {begin, count}, first,
                               absl::MakeSpan(got)));
        ASSERT_EQ(got, want) << begin << " + " << count << " at " << first;
      }
    }
  }
  float value;
  EXPECT_THAT(
      reader->Read("w", "parameter", {5, 3}, 0, absl::MakeSpan(&value, 1)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("which has 5 x 7")));
}

// The manifest of a checkpoint whose columns [2, 4) nobody wrote, or two did.
TEST(CheckpointTest, ColumnsThatAreMissingOrTwiceThereAreRefused) {
  const std::vector<float> values(30, 1.0f);
  for (const int64_t second : {1, 3, 4}) {
    const TempDir job_dir;
    const std::vector<TensorSlice> slices = {
        {"w",
         "parameter",
         {5, 6},
         0,
         absl::MakeConstSpan(values).subspan(0, 10),
         {0, 2}},
        {"w",
         "parameter",
         {5, 6},
         0,
         absl::MakeConstSpan(values).subspan(0, (6 - second) * 5),
         {second, 6 - second}}};
    ASSERT_OK_AND_ASSIGN(
        const ShardDescription shard,
        WriteShard(TemporaryCheckpointPath(job_dir.path(), 40, 2), 0, slices));
    EXPECT_THAT(FinishCheckpoint(job_dir.path(), SmallManifest(), {shard}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("want them from 2 on")));
  }
}

TEST(CheckpointTest, AbsentTensorIsNotFound) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint finished,
                       WriteSmallCheckpoint(job_dir, 2));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(finished.path));
  float value;
  EXPECT_FALSE(reader->Contains("head.bias", "first_moment"));
  EXPECT_THAT(reader->Read("head.bias", "first_moment", {}, 0,
                           absl::MakeSpan(&value, 1)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("head.bias")));
  EXPECT_THAT(
      reader->Read("head.bias", "parameter", {}, 5, absl::MakeSpan(&value, 1)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("which has 1 x 5")));
  EXPECT_THAT(
      reader->Read("head.bias", "parameter", {}, -1, absl::MakeSpan(&value, 1)),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CheckpointTest, MissingDirectoryIsNotFound) {
  const TempDir job_dir;
  EXPECT_THAT(CheckpointReader::Open(job_dir.File("step-1.g1")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("step-1.g1")));
}

TEST(CheckpointTest, NothingHasTheFinalNameBeforeFinish) {
  const TempDir job_dir;
  ASSERT_OK(WriteShards(job_dir.path(), SmallModel(), 2));
  EXPECT_FALSE(fs::exists(job_dir.File("step-40.g2")));
  EXPECT_TRUE(fs::exists(job_dir.File(".step-40.g2.tmp")));
}

TEST(CheckpointTest, CrashBeforeRenameLeavesTheOldOneReadable) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint old,
                       WriteSmallCheckpoint(job_dir, 2));
  // The next attempt to write the same step ends after its shards.
  std::vector<NamedTensor> changed = SmallModel();
  changed[0].values[0] = -1.0f;
  ASSERT_OK(WriteShards(job_dir.path(), changed, 3));
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(old.path));
  float value;
  ASSERT_OK(reader->Read("blocks.0.q.weight", "parameter", {}, 0,
                         absl::MakeSpan(&value, 1)));
  EXPECT_EQ(value, SmallModel()[0].values[0]);
}

TEST(CheckpointTest, FinishingAgainWithTheSameContentsKeepsTheDirectory) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint first,
                       WriteSmallCheckpoint(job_dir, 2));
  const auto written = fs::last_write_time(first.path);
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint second,
                       WriteSmallCheckpoint(job_dir, 2));
  EXPECT_EQ(second.manifest_hash, first.manifest_hash);
  EXPECT_EQ(second.bytes, first.bytes);
  EXPECT_EQ(fs::last_write_time(first.path), written);
  EXPECT_FALSE(fs::exists(job_dir.File(".step-40.g2.tmp")));
}

TEST(CheckpointTest, FinishingWithOtherContentsReplacesTheDirectory) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint first,
                       WriteSmallCheckpoint(job_dir, 4));
  std::vector<NamedTensor> changed = SmallModel();
  changed[0].values[0] = -1.0f;
  ASSERT_OK_AND_ASSIGN(const auto shards,
                       WriteShards(job_dir.path(), changed, 2));
  ASSERT_OK_AND_ASSIGN(
      const FinishedCheckpoint second,
      FinishCheckpoint(job_dir.path(), SmallManifest(), shards, {}));
  EXPECT_NE(second.manifest_hash, first.manifest_hash);
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(second.path));
  float value;
  ASSERT_OK(reader->Read("blocks.0.q.weight", "parameter", {}, 0,
                         absl::MakeSpan(&value, 1)));
  EXPECT_EQ(value, -1.0f);
  EXPECT_FALSE(fs::exists(job_dir.File(".step-40.g2.tmp")));
  EXPECT_FALSE(fs::exists(second.path + "/rank-3.safetensors"));
}

TEST(CheckpointTest, LeftoversOfAnotherAttemptDontGetIn) {
  const TempDir job_dir;
  job_dir.Write(".step-40.g2.tmp/rank-9.safetensors", "torn");
  ASSERT_OK_AND_ASSIGN(const FinishedCheckpoint finished,
                       WriteSmallCheckpoint(job_dir, 2));
  EXPECT_FALSE(fs::exists(finished.path + "/rank-9.safetensors"));
}

TEST(CheckpointTest, ShardThatDoesntArriveFailsTheFinish) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(auto shards,
                       WriteShards(job_dir.path(), SmallModel(), 3));
  shards.erase(shards.begin() + 1);
  EXPECT_THAT(FinishCheckpoint(job_dir.path(), SmallManifest(), shards, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lacks elements 7 to 14")));
  EXPECT_FALSE(fs::exists(job_dir.File(".step-40.g2.tmp")));
  EXPECT_FALSE(fs::exists(job_dir.File("step-40.g2")));
}

TEST(CheckpointTest, ShardOnAnotherFileSystemFailsTheFinish) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const auto shards,
                       WriteShards(job_dir.path(), SmallModel(), 2));
  fs::remove(job_dir.File(".step-40.g2.tmp/rank-1.safetensors"));
  EXPECT_THAT(FinishCheckpoint(job_dir.path(), SmallManifest(), shards, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("rank-1.safetensors")));
}

TEST(CheckpointTest, MissingTokenizerFailsTheFinish) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(const auto shards,
                       WriteShards(job_dir.path(), SmallModel(), 2));
  EXPECT_THAT(FinishCheckpoint(job_dir.path(), SmallManifest(), shards,
                               {job_dir.File("gone.model")}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone.model")));
}

TEST(CheckpointTest, SliceOutsideItsTensorIsRefused) {
  const TempDir job_dir;
  const std::vector<float> values(4);
  EXPECT_THAT(
      WriteShard(job_dir.File("d"), 3, {{"w", "parameter", {2, 3}, 3, values}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("rank 3: parameter of tensor w")));
  EXPECT_THAT(
      WriteShard(job_dir.File("d"), 0,
                 {{"w", "parameter", {2, 4}, 0, values},
                  {"w", "parameter", {2, 4}, 0, values}}),
      StatusIs(absl::StatusCode::kInvalidArgument, EndsWith("given twice")));
}

TEST(CheckpointTest, GarbledShardDescriptionIsRefused) {
  EXPECT_THAT(ParseShard("\xff\xff garbage"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseShard(""), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CheckpointTest, DiscardRemovesWhatWasWritten) {
  const TempDir job_dir;
  ASSERT_OK(WriteShards(job_dir.path(), SmallModel(), 2));
  DiscardCheckpoint(job_dir.path(), 40, 2);
  EXPECT_FALSE(fs::exists(job_dir.File(".step-40.g2.tmp")));
}

}  // namespace
}  // namespace lockstep
