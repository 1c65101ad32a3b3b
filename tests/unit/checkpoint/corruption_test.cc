// Checkpoints that were damaged or made to do harm: each is refused with the
// right code and a message that names the file.
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/content_hash.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;
using testing::TempDir;
using testing::WriteSmallCheckpoint;

constexpr char kShard[] = "step-40.g2/rank-1.safetensors";
constexpr char kManifest[] = "step-40.g2/manifest.json";

class CorruptionTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(WriteSmallCheckpoint(job_dir_, 2)); }

  absl::Status Open() {
    return CheckpointReader::Open(job_dir_.File("step-40.g2")).status();
  }
  // Replaces a part of the manifest that must be there.
  void EditManifest(const std::string& from, const std::string& to) {
    const std::string text = job_dir_.Read(kManifest);
    const std::string edited = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(edited, text) << from << " is not in " << text;
    job_dir_.Write(kManifest, edited);
  }
  // Gives rank 1's shard other bytes, which the manifest vouches for.
  void ReplaceShard(const std::string& contents) {
    const std::string old = job_dir_.Read(kShard);
    job_dir_.Write(kShard, contents);
    EditManifest(HashHex(old), HashHex(contents));
    if (contents.size() != old.size()) {
      EditManifest(absl::StrCat("\"bytes\": \"", old.size(),
                                "\",\n   \"xxh3\": \"", HashHex(contents)),
                   absl::StrCat("\"bytes\": \"", contents.size(),
                                "\",\n   \"xxh3\": \"", HashHex(contents)));
    }
  }
  // Its header's text edited and padded to the same length.
  void EditHeader(const std::string& from, const std::string& to) {
    std::string shard = job_dir_.Read(kShard);
    const size_t at = shard.find(from);
    ASSERT_NE(at, shard.npos) << from;
    const size_t data = 8 + static_cast<unsigned char>(shard[0]) +
                        256 * static_cast<unsigned char>(shard[1]);
    std::string header = shard.substr(8, data - 8);
    header.replace(at - 8, from.size(), to);
    const size_t size = header.find_last_not_of(' ') + 1;
    ASSERT_LE(size, data - 8);
    header.resize(size);
    header.resize(data - 8, ' ');
    ReplaceShard(shard.substr(0, 8) + header + shard.substr(data));
  }

  const TempDir job_dir_;
};

TEST_F(CorruptionTest, UntouchedOneOpens) { EXPECT_OK(Open()); }

TEST_F(CorruptionTest, TruncatedShard) {
  fs::resize_file(job_dir_.File(kShard), 100);
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("rank-1.safetensors has 100 bytes"))));
}

TEST_F(CorruptionTest, FlippedBitIsFoundByItsChecksum) {
  std::string shard = job_dir_.Read(kShard);
  shard.back() ^= 1;
  job_dir_.Write(kShard, shard);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr("rank-1.safetensors"),
                                     HasSubstr("checksum"))));
}

TEST_F(CorruptionTest, FlippedBitInTheTokenizer) {
  job_dir_.Write("step-40.g2/tokenizer.model", "b tokenizer");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("tokenizer.model")));
}

TEST_F(CorruptionTest, WrongHashInTheManifest) {
  EditManifest(HashHex(job_dir_.Read(kShard)), std::string(32, '0'));
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("want 00000000000000000000000000000000")));
}

TEST_F(CorruptionTest, MissingShard) {
  fs::remove(job_dir_.File(kShard));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("rank-1.safetensors")));
}

TEST_F(CorruptionTest, HugeHeaderLength) {
  std::string shard = job_dir_.Read(kShard);
  for (const char high : {'\x01', '\x7f', '\xff'}) {
    shard[7] = high;
    ReplaceShard(shard);
    EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr("rank-1.safetensors"),
                                       HasSubstr("header length"))));
  }
}

TEST_F(CorruptionTest, HeaderLargerThanAnyModels) {
  const std::string spaces(17 << 20, ' ');
  const std::string length("\x00\x00\x10\x01\x00\x00\x00\x00", 8);
  ReplaceShard(length + spaces);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("header length is 17825792")));
}

TEST_F(CorruptionTest, NegativeDataPosition) {
  EditManifest("\"data_position\": \"1280\"", "\"data_position\": \"-1\"");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("data position -1 is negative")));
}

TEST_F(CorruptionTest, ShardShorterThanALength) {
  ReplaceShard("abc");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("too few for a header")));
}

TEST_F(CorruptionTest, HeaderThatIsNoJson) {
  EditHeader("{\"__metadata__\"", "[\"__metadata__\"");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr("rank-1.safetensors"),
                                     HasSubstr("not a JSON object"))));
}

TEST_F(CorruptionTest, DeeplyNestedHeader) {
  ReplaceShard(std::string("\x40\x42\x0f\x00\x00\x00\x00\x00", 8) +
               std::string(1000000, '['));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss));
}

// Rank 1 of 2 has elements 10 to 21 of the first tensor, bytes 0 to 44.
TEST_F(CorruptionTest, OverlappingOffsets) {
  EditHeader("\"data_offsets\":[44,88]", "\"data_offsets\":[40,84]");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr("rank-1.safetensors"),
                                     HasSubstr("overlap"))));
}

TEST_F(CorruptionTest, OffsetsBeyondTheFile) {
  EditHeader("\"data_offsets\":[88,100]", "\"data_offsets\":[88,200]");
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of 100")));
}

TEST_F(CorruptionTest, OffsetsThatRunBackwards) {
  EditHeader("\"data_offsets\":[88,100]", "\"data_offsets\":[100,88]");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(CorruptionTest, NegativeOffsets) {
  EditHeader("\"data_offsets\":[88,100]", "\"data_offsets\":[-8,4]");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("no proper data_offsets")));
}

TEST_F(CorruptionTest, ShapeThatDoesntFitItsBytes) {
  EditHeader("\"shape\":[3]", "\"shape\":[4]");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("don't fit its shape")));
}

TEST_F(CorruptionTest, ShapeThatOverflows) {
  // 2^32 x 2^30 elements of 4 bytes wrap around to 0 bytes.
  EditHeader("\"shape\":[3]", "\"shape\":[4294967296,1073741824]");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(CorruptionTest, AnotherDtype) {
  EditHeader("\"dtype\":\"F32\"", "\"dtype\":\"F64\"");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("F32")));
}

TEST_F(CorruptionTest, RepeatedKey) {
  EditHeader("\"first_moment/", "\"parameter/");
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("repeated")));
}

TEST_F(CorruptionTest, TensorThatIsNotInItsShard) {
  EditManifest("\"key\": \"parameter/head.bias@2\"",
               "\"key\": \"parameter/tail.bias@2\"");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr("rank-1.safetensors"),
                                     HasSubstr("parameter/tail.bias@2"))));
}

TEST_F(CorruptionTest, MissingSlice) {
  // The second half of the bias is said to belong to another tensor.
  const std::string text = job_dir_.Read(kManifest);
  const size_t last = text.rfind("\"name\": \"head.bias\"");
  ASSERT_NE(last, text.npos);
  job_dir_.Write(kManifest, std::string(text).replace(
                                last, 19, "\"name\": \"tail.bias\""));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr("manifest.json"),
                                     HasSubstr("lacks elements"))));
}

TEST_F(CorruptionTest, SlicesThatOverlap) {
  EditManifest("\"offset\": \"10\"", "\"offset\": \"9\"");
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("twice")));
}

TEST_F(CorruptionTest, NegativeCount) {
  EditManifest("\"count\": \"11\"", "\"count\": \"-11\"");
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("elements")));
}

TEST_F(CorruptionTest, PathInAFileName) {
  job_dir_.Write("rank-1.safetensors", job_dir_.Read(kShard));
  for (const char* name :
       {"../rank-1.safetensors", "/etc/passwd", "sub/rank-1.safetensors", "..",
        "", "manifest.json"}) {
    const std::string text = job_dir_.Read(kManifest);
    EditManifest("\"rank-1.safetensors\"", absl::StrCat("\"", name, "\""));
    EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr("manifest.json"),
                                       HasSubstr("not a plain name"))))
        << name;
    job_dir_.Write(kManifest, text);
  }
}

TEST_F(CorruptionTest, SymbolicLinkInPlaceOfAShard) {
  const std::string shard = job_dir_.Write("elsewhere", job_dir_.Read(kShard));
  fs::remove(job_dir_.File(kShard));
  fs::create_symlink(shard, job_dir_.File(kShard));
  EXPECT_THAT(Open().message(), HasSubstr("rank-1.safetensors"));
}

TEST_F(CorruptionTest, TokenizerFileThatIsNotListed) {
  EditManifest("\"tokenizer_files\": [\n  \"tokenizer.model\"",
               "\"tokenizer_files\": [\n  \"../../tokenizer.model\"");
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not listed")));
}

TEST_F(CorruptionTest, ManifestThatIsNoJson) {
  job_dir_.Write(kManifest, "{\"job\": ");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("step-40.g2/manifest.json")));
}

TEST_F(CorruptionTest, ManifestOfANewerFormat) {
  EditManifest("\"format_version\": \"1\"", "\"format_version\": \"3\"");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("format version 3 is newer")));
}

TEST_F(CorruptionTest, MissingManifest) {
  fs::remove(job_dir_.File(kManifest));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kNotFound,
                               HasSubstr("manifest.json")));
}

// Whatever byte is changed, opening ends with a status, not with a crash.
TEST_F(CorruptionTest, BytesOfHeaderAndManifestChanged) {
  const std::string shard = job_dir_.Read(kShard);
  const std::string manifest = job_dir_.Read(kManifest);
  for (size_t at = 0; at < 400 && at < shard.size(); at += 3) {
    std::string changed = shard;
    changed[at] ^= 0x15;
    ReplaceShard(changed);
    Open().IgnoreError();
  }
  ReplaceShard(shard);
  for (size_t at = 0; at < manifest.size(); at += 7) {
    std::string changed = manifest;
    changed[at] ^= 0x15;
    job_dir_.Write(kManifest, changed);
    Open().IgnoreError();
  }
}

}  // namespace
}  // namespace lockstep
