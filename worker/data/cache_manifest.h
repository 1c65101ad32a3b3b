// CacheManifest: what a token cache holds, `manifest.json` in its directory
// (docs/formats/token_cache.md).
#ifndef LOCKSTEP_WORKER_DATA_CACHE_MANIFEST_H_
#define LOCKSTEP_WORKER_DATA_CACHE_MANIFEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/token_stream.h"

namespace lockstep {

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr char kTrainPart[] = "train";
inline constexpr char kValidationPart[] = "validation";

// A file of the cache.
struct CacheFile {
  std::string name;
  int64_t bytes = 0;
  // HashHex of the whole, SampledHashHex of it.
  std::string hash;
  std::string sampled_hash;
};

// Tokens [first, first + count) of a `tokens` file, which is used in place.
struct CacheInput {
  std::string path;  // absolute
  int64_t bytes = 0;
  std::string sampled_hash;
  int64_t first = 0;
  int64_t count = 0;
};

struct CachePart {
  int64_t documents = 0;
  // Stored tokens.
  int64_t tokens = 0;
  int64_t text_bytes = 0;
  // Rows that were cut to the sequence length (classification).
  int64_t cut_rows = 0;
  // Of `tokens` data, in order; else empty.
  std::vector<CacheInput> inputs;
};

struct CacheManifest {
  enum class Layout : uint8_t {
    kLanguageModel,   // PART.tokens
    kClassification,  // PART.tokens, PART.offsets, PART.classes
    kTokenFiles,      // no files: the parts' inputs
  };
  Layout layout = Layout::kLanguageModel;
  TokenWidth width = TokenWidth::kTwoBytes;
  int64_t vocabulary = 0;
  std::optional<int32_t> end_token;
  std::map<std::string, CachePart> parts;
  std::vector<CacheFile> files;

  // Hash of all of the above but the inputs' paths: equal where the contents
  // are.
  std::string Digest() const;
  std::string ToJson() const;
  // Null where there is none.
  const CacheFile* File(std::string_view name) const;
};

// DATA_LOSS, with `path` and the reason, unless `json` is a manifest whose
// digest is right.
absl::StatusOr<CacheManifest> ParseManifest(const std::string& json,
                                            const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CACHE_MANIFEST_H_
