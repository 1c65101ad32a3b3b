#include "common/spec/yaml_tree.h"

#include <optional>
#include <sstream>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/utf8.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace lockstep {
namespace {

absl::Status At(std::string_view name, int line, int column,
                const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(name), ":", line, ":", column, ": ", what));
}

// yaml-cpp guesses UTF-16 and UTF-32 from zero bytes; only UTF-8 is let in.
absl::Status CheckUtf8(std::string_view text, std::string_view name) {
  int line = 1;
  int column = 1;
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text.substr(i));
    if (length == 0) return At(name, line, column, "text is not UTF-8");
    if (text[i] == '\0') return At(name, line, column, "text has a zero byte");
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
    i += length;
  }
  return absl::OkStatus();
}

// Thrown by TreeBuilder to make yaml-cpp stop; never leaves this file.
struct Refused {
  YAML::Mark mark;
  std::string what;
};

// Builds the tree from yaml-cpp's events. The events, not yaml-cpp's own tree,
// for these tell aliases, anchors, tags and depth before they cost anything.
class TreeBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    OnScalar(mark, "?", anchor, "");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{mark, "aliases are not allowed"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    YamlNode node = NewNode(YamlNode::Kind::kScalar, mark, tag, anchor);
    node.scalar = value;
    // yaml-cpp tags a quoted scalar "!".
    node.plain = tag != "!";
    Add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(NewNode(YamlNode::Kind::kSequence, mark, tag, anchor), mark);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(NewNode(YamlNode::Kind::kMapping, mark, tag, anchor), mark);
  }
  void OnMapEnd() override { Close(); }

  YamlNode TakeRoot() { return std::move(root_); }

 private:
  struct OpenNode {
    YamlNode node;
    // The key that waits for its value, in a mapping.
    std::optional<YamlNode> key;
  };

  static YamlNode NewNode(YamlNode::Kind kind, const YAML::Mark& mark,
                          const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      throw Refused{mark, "anchors are not allowed"};
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{mark, absl::StrCat("tags are not allowed (", tag, ")")};
    }
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void Open(YamlNode node, const YAML::Mark& mark) {
    if (open_.size() >= kMostYamlDepth) {
      throw Refused{mark, absl::StrCat("nested deeper than ", kMostYamlDepth)};
    }
    open_.push_back({std::move(node), std::nullopt});
  }

  void Close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Add(std::move(node));
  }

  void Add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::kSequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key.has_value()) {
      if (node.kind != YamlNode::Kind::kScalar) {
        YAML::Mark mark;
        mark.line = node.line - 1;
        mark.column = node.column - 1;
        throw Refused{mark, "a key must be a word"};
      }
      parent.key = std::move(node);
    } else {
      parent.node.members.push_back({*std::move(parent.key), std::move(node)});
      parent.key.reset();
    }
  }

  YamlNode root_;
  std::vector<OpenNode> open_;
};

}  // namespace

bool YamlNode::IsNull() const {
  return kind == Kind::kScalar && plain &&
         (scalar.empty() || scalar == "~" || scalar == "null" ||
          scalar == "Null" || scalar == "NULL");
}

absl::StatusOr<YamlNode> ParseYaml(std::string_view text,
                                   std::string_view name) {
  if (text.size() > kMostYamlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), ": has ", text.size(),
                     " bytes, want at most ", kMostYamlBytes));
  }
  RETURN_IF_ERROR(CheckUtf8(text, name));
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    YamlNode root;
    root.plain = true;
    if (!parser.HandleNextDocument(builder)) return root;
    root = builder.TakeRoot();
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      const YamlNode more = second.TakeRoot();
      return At(name, more.line, more.column,
                "a second document begins here, want one");
    }
    return root;
  } catch (const Refused& refused) {
    return At(name, refused.mark.line + 1, refused.mark.column + 1,
              refused.what);
  } catch (const YAML::Exception& error) {
    return At(name, error.mark.line + 1, error.mark.column + 1, error.msg);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), ": ", error.what()));
  }
}

}  // namespace lockstep
