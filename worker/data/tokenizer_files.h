// The files in which a tokenizer and a label list are kept, in a token cache
// and beside a checkpoint: lockstep_tokenizer.json (its kind), tokenizer.model
// (SentencePiece's own) and labels.json. See also LoadTokenizer and LoadLabels
// in worker/data/tokenizer.h.
#ifndef LOCKSTEP_WORKER_DATA_TOKENIZER_FILES_H_
#define LOCKSTEP_WORKER_DATA_TOKENIZER_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

inline constexpr char kTokenizerKindName[] = "lockstep_tokenizer.json";
inline constexpr char kTokenizerModelName[] = "tokenizer.model";
inline constexpr char kLabelsName[] = "labels.json";
// Largest SentencePiece model that is read; one of a million pieces has some
// 20 MiB.
inline constexpr int64_t kMostModelBytes = int64_t{64} << 20;

// Contents of lockstep_tokenizer.json for "bytes" or "sentencepiece".
std::string TokenizerKindJson(const std::string& kind);
// Contents of labels.json.
std::string LabelsJson(absl::Span<const std::string> labels);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_TOKENIZER_FILES_H_
