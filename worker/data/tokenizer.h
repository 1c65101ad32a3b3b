// Tokenizer: bytes to token ids and back, lossless: Decode(Encode(x)) is x, for
// every sequence of bytes.
#ifndef LOCKSTEP_WORKER_DATA_TOKENIZER_H_
#define LOCKSTEP_WORKER_DATA_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep {

// Threads: const functions may be called from any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary() const = 0;
  // Opens each document; never produced by Encode.
  virtual int32_t end_token() const = 0;
  // Appends the ids of `text`.
  virtual void Encode(std::string_view text,
                      std::vector<int32_t>& tokens) const = 0;
  // The bytes of one token; empty for the end token. OUT_OF_RANGE for an id
  // outside the vocabulary.
  virtual absl::StatusOr<std::string> DecodeOne(int32_t token) const = 0;
};

// Rebuilds a tokenizer from the files that PreparedData::tokenizer_files names
// (in any directory: matched by file name).
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::vector<std::string>& files);
// The labels kept beside it; empty when there are none.
absl::StatusOr<std::vector<std::string>> LoadLabels(
    const std::vector<std::string>& files);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_TOKENIZER_H_
