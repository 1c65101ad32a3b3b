// The tokenizer `bytes`: a byte's value is its id, 256 is the end token.
#ifndef LOCKSTEP_WORKER_DATA_BYTE_TOKENIZER_H_
#define LOCKSTEP_WORKER_DATA_BYTE_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/tokenizer.h"

namespace lockstep {

class ByteTokenizer : public Tokenizer {
 public:
  int64_t vocabulary() const override { return 257; }
  int32_t end_token() const override { return 256; }
  void Encode(std::string_view text,
              std::vector<int32_t>& tokens) const override;
  absl::StatusOr<std::string> DecodeOne(int32_t token) const override;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_BYTE_TOKENIZER_H_
