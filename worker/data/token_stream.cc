#include "worker/data/token_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/log.h"

namespace lockstep {
namespace {

template <typename Id>
void AppendIds(std::string_view bytes, uint32_t most,
               std::vector<int32_t>& tokens) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Id)) {
    Id id;
    std::memcpy(&id, bytes.data() + at, sizeof(Id));
    tokens.push_back(
        static_cast<int32_t>(std::min(static_cast<uint32_t>(id), most)));
  }
}

}  // namespace

TokenWidth WidthFor(int64_t vocabulary) {
  return vocabulary <= 65536 ? TokenWidth::kTwoBytes : TokenWidth::kFourBytes;
}

TokenStream::TokenStream(Layout layout) : layout_(std::move(layout)) {
  CHECK(layout_.vocabulary > 0) << layout_.vocabulary;
  const auto width = static_cast<size_t>(layout_.width);
  size_ = layout_.front.has_value() ? 1 : 0;
  for (const std::string_view piece : layout_.pieces) {
    starts_.push_back(size_);
    size_ += static_cast<int64_t>(piece.size() / width);
  }
  if (layout_.back.has_value()) ++size_;
}

int32_t TokenStream::At(int64_t index) const {
  std::vector<int32_t> one;
  Read(index, 1, one);
  return one.front();
}

void TokenStream::Read(int64_t first, int64_t count,
                       std::vector<int32_t>& tokens) const {
  CHECK(first >= 0 && count >= 0 && first + count <= size_)
      << "tokens " << first << " + " << count << " of " << size_;
  const auto width = static_cast<int64_t>(layout_.width);
  const auto most = static_cast<uint32_t>(layout_.vocabulary - 1);
  tokens.reserve(tokens.size() + static_cast<size_t>(count));
  if (count > 0 && first == 0 && layout_.front.has_value()) {
    tokens.push_back(*layout_.front);
    ++first;
    --count;
  }
  auto piece = static_cast<size_t>(
      std::upper_bound(starts_.begin(), starts_.end(), first) -
      starts_.begin());
  for (; count > 0 && piece > 0 && piece <= starts_.size(); ++piece) {
    const std::string_view bytes = layout_.pieces[piece - 1];
    const int64_t offset = first - starts_[piece - 1];
    const int64_t held = static_cast<int64_t>(bytes.size()) / width;
    const int64_t part = std::min(count, held - offset);
    if (part <= 0) continue;
    const std::string_view wanted = bytes.substr(
        static_cast<size_t>(offset * width), static_cast<size_t>(part * width));
    if (layout_.width == TokenWidth::kTwoBytes) {
      AppendIds<uint16_t>(wanted, most, tokens);
    } else {
      AppendIds<uint32_t>(wanted, most, tokens);
    }
    first += part;
    count -= part;
  }
  if (count > 0) tokens.push_back(*layout_.back);
}

}  // namespace lockstep
