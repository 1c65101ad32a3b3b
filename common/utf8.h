// The well-formed UTF-8 of the Unicode standard (table 3-7): no overlong forms,
// no surrogates, nothing above U+10FFFF.
#ifndef LOCKSTEP_COMMON_UTF8_H_
#define LOCKSTEP_COMMON_UTF8_H_

#include <cstddef>
#include <string_view>

namespace lockstep {

// Bytes of the character that `text` starts with; 0 where it starts with none.
inline size_t Utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [byte](size_t i) {
    return (byte(i) & 0xc0u) == 0x80u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return continues(1) ? 2 : 0;
  if (first < 0xf0) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first < 0xf5) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3)
               ? 4
               : 0;
  }
  return 0;
}

// Whether a character may start with this byte.
inline bool StartsUtf8(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_UTF8_H_
