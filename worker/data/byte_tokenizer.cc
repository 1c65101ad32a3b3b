#include "worker/data/byte_tokenizer.h"

#include "worker/data/str_cat.h"

namespace lockstep {

void ByteTokenizer::Encode(std::string_view text,
                           std::vector<int32_t>& tokens) const {
  tokens.reserve(tokens.size() + text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

absl::StatusOr<std::string> ByteTokenizer::DecodeOne(int32_t token) const {
  if (token < 0 || token >= vocabulary()) {
    return absl::OutOfRangeError(
        StrCat("token ", token, " is not in [0, ", vocabulary(), ")"));
  }
  if (token == end_token()) return std::string();
  return std::string(1, static_cast<char>(token));
}

}  // namespace lockstep
