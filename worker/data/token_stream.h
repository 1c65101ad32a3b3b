// TokenStream: a read-only sequence of token ids in mapped memory, in one or
// more pieces, with an optional id put before and after them.
#ifndef LOCKSTEP_WORKER_DATA_TOKEN_STREAM_H_
#define LOCKSTEP_WORKER_DATA_TOKEN_STREAM_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep {

// Bytes of one stored id; little endian.
enum class TokenWidth : uint8_t { kTwoBytes = 2, kFourBytes = 4 };
// The least that holds ids below `vocabulary`.
TokenWidth WidthFor(int64_t vocabulary);

// The views must outlive it. Threads: const functions may be called from any
// thread.
class TokenStream {
 public:
  struct Layout {
    TokenWidth width = TokenWidth::kTwoBytes;
    std::vector<std::string_view> pieces;
    std::optional<int32_t> front;
    std::optional<int32_t> back;
    // Ids at or above it (a file that changed under us) are read as the last
    // one below, so that no id can index past an embedding.
    int64_t vocabulary = 0;
  };

  explicit TokenStream(Layout layout);
  int64_t size() const { return size_; }
  int32_t At(int64_t index) const;
  // Appends ids [first, first + count), which must be inside.
  void Read(int64_t first, int64_t count, std::vector<int32_t>& tokens) const;

 private:
  Layout layout_;
  std::vector<int64_t> starts_;  // of each piece in the stream
  int64_t size_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_TOKEN_STREAM_H_
