#include "worker/data/document_reader.h"

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/data/csv_reader.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Keeps all that it is told.
class Recorder : public DocumentVisitor {
 public:
  absl::Status Begin(const DocumentOrigin& origin,
                     std::string_view label) override {
    texts.emplace_back();
    labels.emplace_back(label);
    lines.push_back(origin.line);
    return absl::OkStatus();
  }
  absl::Status Text(std::string_view piece) override {
    texts.back() += piece;
    pieces.emplace_back(piece);
    return absl::OkStatus();
  }
  absl::Status End() override {
    ++ended;
    return absl::OkStatus();
  }
  void Consumed(int64_t bytes) override { consumed += bytes; }

  std::vector<std::string> texts;
  std::vector<std::string> labels;
  std::vector<std::string> pieces;
  std::vector<int64_t> lines;
  size_t ended = 0;
  int64_t consumed = 0;
};

class DocumentReaderTest : public ::testing::Test {
 protected:
  absl::Status Read(const std::string& name, const std::string& contents,
                    std::optional<std::string> label = std::nullopt,
                    const DataPart& part = DataPart()) {
    recorder_ = Recorder();
    dir_.Write(name, contents);
    v1::DataSource source;
    source.add_path(name);
    ASSIGN_OR_RETURN(const DataRoot root, DataRoot::Open(dir_.path()));
    ASSIGN_OR_RETURN(const Inputs inputs, FindInputs(root, source, "data"));
    return ReadDocuments(root, inputs, {"text", std::move(label)}, part,
                         recorder_);
  }

  TempDir dir_;
  Recorder recorder_;
};

TEST_F(DocumentReaderTest, ATextFileIsOneDocumentInPiecesThatEndWithLines) {
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) {
    text += "line " + std::to_string(i) + "\n";
  }
  text += "no newline at the end";
  ASSERT_OK(Read("a.txt", text));
  EXPECT_THAT(recorder_.texts, ElementsAre(text));
  EXPECT_EQ(recorder_.ended, 1u);
  EXPECT_EQ(recorder_.consumed, static_cast<int64_t>(text.size()));
  ASSERT_THAT(recorder_.pieces.size(), Gt(2u));
  for (size_t i = 0; i + 1 < recorder_.pieces.size(); ++i) {
    EXPECT_EQ(recorder_.pieces[i].back(), '\n');
  }
}

TEST_F(DocumentReaderTest, ATextWithoutLinesIsCutBetweenCharacters) {
  std::string text;
  while (text.size() < 2'500'000) text += "\xe4\xb8\xad\xf0\x9f\x98\x80";
  ASSERT_OK(Read("a.txt", text));
  EXPECT_EQ(recorder_.texts.front(), text);
  ASSERT_THAT(recorder_.pieces.size(), Gt(1u));
  for (std::string_view piece : recorder_.pieces) {
    while (!piece.empty()) {
      const size_t character = Utf8Length(piece);
      ASSERT_GT(character, 0u);
      piece.remove_prefix(character);
    }
  }
}

TEST_F(DocumentReaderTest, ABinaryTextComesBackByteForByte) {
  std::mt19937 random(7);
  std::string text;
  for (int i = 0; i < 2'100'000; ++i) text += static_cast<char>(random());
  ASSERT_OK(Read("a.txt", text));
  EXPECT_TRUE(recorder_.texts.front() == text);
}

TEST_F(DocumentReaderTest, JsonlRowsGiveTextAndLabel) {
  ASSERT_OK(
      Read("a.jsonl",
           "{\"text\": \"one\\n\\u00e9\", \"label\": \"x\"}\n"
           "\n  \r\n"
           "{\"n\": {\"text\": \"inner\"}, \"label\": 3, \"text\": \"\"}\r\n"
           "{\"l\": [{\"text\": 1}, null], \"text\":\"last\",\"label\":true}",
           "label"));
  EXPECT_THAT(recorder_.texts, ElementsAre("one\n\xc3\xa9", "", "last"));
  EXPECT_THAT(recorder_.labels, ElementsAre("x", "3", "true"));
  EXPECT_THAT(recorder_.lines, ElementsAre(1, 4, 5));
}

TEST_F(DocumentReaderTest, BrokenJsonlNamesFileAndLine) {
  const std::string good = "{\"text\": \"a\"}\n";
  const auto expect = [&](const std::string& line, const std::string& phrase) {
    EXPECT_THAT(Read("bad.jsonl", good + line + "\n" + good),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(dir_.File("bad.jsonl") + ":2: "),
                               HasSubstr(phrase))))
        << line;
  };
  expect("{\"text\": \"a\"", "not valid JSON");
  expect("{\"text\": \"a\"} {\"text\": \"b\"}", "not valid JSON");
  expect("{\"text\": \"\xff\"}", "not valid JSON");
  expect("{\"text\": \"\\ud800\"}", "not valid JSON");
  expect("nonsense", "not valid JSON");
  expect("[1, 2]", "want a JSON object, got an array");
  expect("\"text\"", "want a JSON object, got a string");
  expect("12", "want a JSON object, got a number");
  expect("{\"body\": \"a\"}", "no key \"text\"");
  expect("{\"text\": null}", "key \"text\" holds null");
  expect("{\"text\": 7}", "key \"text\" holds a number");
  expect("{\"text\": [\"a\"]}", "key \"text\" holds an array");
}

TEST_F(DocumentReaderTest, AMissingOrStrangeLabelNamesKeyAndLine) {
  EXPECT_THAT(
      Read("a.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\"}",
           "label"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(":2: no key \"label\"")));
  EXPECT_THAT(Read("a.jsonl", "{\"text\": \"a\", \"label\": {}}", "label"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(":1: key \"label\" holds an object")));
}

TEST_F(DocumentReaderTest, DeepJsonIsNoProblem) {
  const std::string deep(100'000, '[');
  const std::string closed(100'000, ']');
  EXPECT_OK(Read("a.jsonl", "{\"x\": " + deep + closed + ", \"text\": \"t\"}"));
  EXPECT_THAT(recorder_.texts, ElementsAre("t"));
  EXPECT_THAT(Read("b.jsonl", "{\"x\": " + deep),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(DocumentReaderTest, CsvRowsFollowRfc4180) {
  ASSERT_OK(Read("a.csv",
                 "\xef\xbb\xbftext,label,other\r\n"
                 "\"a, \"\"quoted\"\"\nsecond line\",x,1\r\n"
                 "\r\n"
                 "plain,y,\n"
                 ",z,\"\"\n"
                 "last,w,3",
                 "label"));
  EXPECT_THAT(recorder_.texts,
              ElementsAre("a, \"quoted\"\nsecond line", "plain", "", "last"));
  EXPECT_THAT(recorder_.labels, ElementsAre("x", "y", "z", "w"));
  EXPECT_THAT(recorder_.lines, ElementsAre(2, 5, 6, 7));
}

TEST_F(DocumentReaderTest, BrokenCsvNamesFileAndLine) {
  const auto expect = [&](const std::string& rows, const std::string& phrase) {
    EXPECT_THAT(Read("bad.csv", "text,label\n" + rows),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(dir_.File("bad.csv") + phrase)))
        << rows;
  };
  expect("a,b\nc\n", ":3: 1 fields, want the header's 2");
  expect("a,b,c\n", ":2: 3 fields, want the header's 2");
  expect("a,b\"c\n", ":2: a quote inside an unquoted field");
  expect("\"a\nb\"x,c\n", ":3: characters after the closing quote");
  expect("a,b\n\"never\nends,x\n", ":3: a quoted field that starts here");
  expect("a\rb,c\n", ":2: a carriage return inside");
}

TEST_F(DocumentReaderTest, AnAbsentColumnNamesThoseThatExist) {
  EXPECT_THAT(Read("a.csv", "text,class\nx,y\n", "label"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("no column \"label\""),
                             HasSubstr("text, class"))));
  EXPECT_THAT(Read("a.csv", "text,text\nx,y\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("two columns \"text\"")));
  EXPECT_THAT(Read("a.csv", "\n\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no header line")));
}

TEST_F(DocumentReaderTest, CsvBlocksMayEndAnywhere) {
  const std::string text =
      "text,b\r\n\"x\"\"y\r\n\",1\r\n\r\n,\n\"\",\"\"\nz,\"\n\"";
  std::vector<std::vector<std::string>> whole;
  for (size_t step = 1; step <= text.size(); ++step) {
    std::vector<std::vector<std::string>> records;
    CsvParser parser("f", 1000,
                     [&](const std::vector<std::string>& record, int64_t) {
                       records.push_back(record);
                       return absl::OkStatus();
                     });
    for (size_t at = 0; at < text.size(); at += step) {
      ASSERT_OK(parser.Feed(std::string_view(text).substr(at, step)));
    }
    ASSERT_OK(parser.Finish());
    if (step == 1) whole = records;
    EXPECT_EQ(records, whole) << "blocks of " << step;
  }
  EXPECT_EQ(whole.size(), 5u);
}

TEST_F(DocumentReaderTest, RecordsOfTooManyFieldsAreRefused) {
  EXPECT_THAT(Read("a.csv", "text\n" + std::string(20'000, ',')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.csv:2: the record has more than 10000")));
}

TEST_F(DocumentReaderTest, LongColumnNamesAreCutInMessages) {
  std::string header = std::string(10'000, 'x');
  for (int i = 0; i < 1000; ++i) header += ",y" + std::to_string(i);
  const absl::Status status = Read("a.csv", header + "\n");
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(std::string(100, 'x') + "..., y0, y1")));
  EXPECT_LT(status.message().size(), 500);
}

TEST_F(DocumentReaderTest, TooLongRowsAreRefused) {
  CsvParser parser("f", 10, [](const std::vector<std::string>&, int64_t) {
    return absl::OkStatus();
  });
  EXPECT_THAT(parser.Feed("a,b\nxxxxxxxxxxxxxxxxx"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("f:2: the record is longer than 10")));
}

TEST_F(DocumentReaderTest, TheSidesOfAHoldoutTakeEachRowOnce) {
  std::string rows;
  for (int i = 0; i < 50; ++i) {
    rows += "{\"text\": \"" + std::to_string(i) + "\"}\n";
  }
  ASSERT_OK_AND_ASSIGN(const Holdout split, HoldOutDocuments(50, 0.25));
  ASSERT_OK(Read("a.jsonl", rows, std::nullopt, split.validation));
  std::vector<std::string> all = recorder_.texts;
  EXPECT_EQ(all.size(), 12u);
  ASSERT_OK(Read("a.jsonl", rows, std::nullopt, split.train));
  EXPECT_EQ(recorder_.texts.size(), 38u);
  all.insert(all.end(), recorder_.texts.begin(), recorder_.texts.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.size(), 50u);
}

// Random bytes in place of rows give an error or rows, never anything worse.
TEST_F(DocumentReaderTest, RandomBytesNeverCrash) {
  std::mt19937 random(99);
  const std::string alphabet = "\"{}[],:\\\n\r tex1\xff\xc3\xa9";
  for (int round = 0; round < 300; ++round) {
    std::string contents = round % 2 == 0 ? "text\n" : "{\"text\":\"";
    for (int i = 0; i < 40; ++i) {
      contents += alphabet[random() % alphabet.size()];
    }
    (void)Read("f.csv", contents);
    (void)Read("f.jsonl", contents);
  }
}

}  // namespace
}  // namespace lockstep
