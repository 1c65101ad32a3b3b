#include "worker/data/input_files.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InputFilesTest : public ::testing::Test {
 protected:
  absl::StatusOr<Inputs> Find(
      const std::vector<std::string>& paths,
      v1::DataFormat format = v1::DATA_FORMAT_UNSPECIFIED) {
    v1::DataSource source;
    for (const std::string& path : paths) source.add_path(path);
    source.set_format(format);
    absl::StatusOr<DataRoot> root = DataRoot::Open(dir_.path());
    CHECK(root.ok()) << root.status();
    return FindInputs(*root, source, "data.train");
  }
  static std::vector<std::string> Paths(const Inputs& inputs) {
    std::vector<std::string> paths;
    for (const InputFile& file : inputs.files) paths.push_back(file.path);
    return paths;
  }

  TempDir dir_;
};

TEST_F(InputFilesTest, AFolderGivesItsFilesOfTheFormatByName) {
  dir_.Write("d/b.txt", "b");
  dir_.Write("d/a.txt", "a");
  dir_.Write("d/.c.txt", "c");
  dir_.Write("d/readme.md", "x");
  dir_.Write("d/deeper/z.txt", "z");
  ASSERT_OK_AND_ASSIGN(const Inputs inputs, Find({"d"}));
  EXPECT_EQ(inputs.format, v1::DATA_FORMAT_TEXT);
  EXPECT_THAT(Paths(inputs), ElementsAre("d/a.txt", "d/b.txt"));
  EXPECT_EQ(inputs.bytes(), 2);
}

TEST_F(InputFilesTest, AListKeepsItsOrder) {
  dir_.Write("b.jsonl", "{}");
  dir_.Write("a.jsonl", "{}");
  dir_.Write("c1.jsonl", "{}");
  dir_.Write("c0.jsonl", "{}");
  ASSERT_OK_AND_ASSIGN(const Inputs inputs,
                       Find({"b.jsonl", "a.jsonl", "c*.jsonl"}));
  EXPECT_THAT(Paths(inputs),
              ElementsAre("b.jsonl", "a.jsonl", "c0.jsonl", "c1.jsonl"));
}

TEST_F(InputFilesTest, AnExplicitFormatOverridesTheName) {
  dir_.Write("d/x.log", "hello");
  ASSERT_OK_AND_ASSIGN(const Inputs inputs,
                       Find({"d/x.log"}, v1::DATA_FORMAT_TEXT));
  EXPECT_EQ(inputs.format, v1::DATA_FORMAT_TEXT);
  EXPECT_THAT(Find({"d"}, v1::DATA_FORMAT_CSV),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("holds no file that ends in .csv")));
}

TEST_F(InputFilesTest, AFileWithGlobCharactersInItsNameIsItself) {
  dir_.Write("a[1].txt", "x");
  ASSERT_OK_AND_ASSIGN(const Inputs inputs, Find({"a[1].txt"}));
  EXPECT_THAT(Paths(inputs), ElementsAre("a[1].txt"));
}

TEST_F(InputFilesTest, WhatIsWrongIsNamed) {
  dir_.Write("empty.txt", "");
  dir_.Write("a.txt", "a");
  dir_.Write("b.csv", "b");
  dir_.Write("strange", "b");
  EXPECT_THAT(Find({"none.txt"}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("data.train"),
                             HasSubstr(dir_.File("none.txt")))));
  EXPECT_THAT(Find({"n*.txt"}), StatusIs(absl::StatusCode::kNotFound,
                                         HasSubstr("nothing matches")));
  EXPECT_THAT(Find({"empty.txt"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("empty.txt is empty")));
  EXPECT_THAT(Find({"a.txt", "*.txt"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than once")));
  EXPECT_THAT(Find({"a.txt", "b.csv"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("is csv"), HasSubstr("is text"))));
  EXPECT_THAT(Find({"strange"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("data.train.format")));
}

TEST_F(InputFilesTest, AChangedFileIsNoticed) {
  dir_.Write("a.txt", "a");
  ASSERT_OK_AND_ASSIGN(const Inputs inputs, Find({"a.txt"}));
  dir_.Write("a.txt", "longer");
  ASSERT_OK_AND_ASSIGN(const DataRoot root, DataRoot::Open(dir_.path()));
  EXPECT_THAT(OpenInput(root, inputs.files[0]),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("changed while")));
}

}  // namespace
}  // namespace lockstep
