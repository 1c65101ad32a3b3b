#include "worker/data/token_files.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "common/status_macros.h"
#include "worker/data/block_reader.h"
#include "worker/data/mapped_file.h"
#include "worker/data/sampled_hash.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

template <typename Id>
Id IdAt(std::string_view bytes, size_t index) {
  Id id;
  std::memcpy(&id, bytes.data() + index * sizeof(Id), sizeof(Id));
  return id;
}

template <typename Id>
int64_t LargestId(std::string_view bytes) {
  Id largest = 0;
  for (size_t i = 0; i < bytes.size() / sizeof(Id); ++i) {
    largest = std::max(largest, IdAt<Id>(bytes, i));
  }
  return largest;
}

template <typename Id>
size_t FirstAtLeast(std::string_view bytes, int64_t limit) {
  size_t index = 0;
  while (static_cast<int64_t>(IdAt<Id>(bytes, index)) < limit) ++index;
  return index;
}

absl::StatusOr<int64_t> ScanFile(const DataRoot& root, const InputFile& file,
                                 const TokenFileOptions& options,
                                 Progress& progress) {
  const bool two = options.width == TokenWidth::kTwoBytes;
  const int64_t limit =
      options.vocabulary.value_or(int64_t{std::numeric_limits<int32_t>::max()});
  ASSIGN_OR_RETURN(BlockReader reader,
                   BlockReader::Open(root, file, {0, file.bytes}));
  int64_t largest = 0;
  for (int64_t index = 0;;) {
    // Blocks are whole numbers of ids, but for the size that was checked.
    ASSIGN_OR_RETURN(const std::string_view block, reader.Next());
    if (block.empty()) return largest;
    progress.Add(static_cast<int64_t>(block.size()));
    const int64_t here =
        two ? LargestId<uint16_t>(block) : LargestId<uint32_t>(block);
    if (here >= limit) {
      const size_t at = two ? FirstAtLeast<uint16_t>(block, limit)
                            : FirstAtLeast<uint32_t>(block, limit);
      const int64_t id = two ? int64_t{IdAt<uint16_t>(block, at)}
                             : int64_t{IdAt<uint32_t>(block, at)};
      return absl::InvalidArgumentError(StrCat(
          file.display, ": token ", index + static_cast<int64_t>(at), " is ",
          id, ", want less than ",
          options.vocabulary.has_value() ? "model.vocabulary " : "", limit));
    }
    largest = std::max(largest, here);
    index += static_cast<int64_t>(block.size()) /
             static_cast<int64_t>(options.width);
  }
}

}  // namespace

TokenWidth WidthOf(v1::TokenDType dtype, std::optional<int64_t> vocabulary) {
  switch (dtype) {
    case v1::TOKEN_DTYPE_UINT16:
      return TokenWidth::kTwoBytes;
    case v1::TOKEN_DTYPE_UINT32:
      return TokenWidth::kFourBytes;
    default:
      return WidthFor(vocabulary.value_or(0));
  }
}

absl::StatusOr<TokenFiles> ScanTokenFiles(const DataRoot& root,
                                          const Inputs& inputs,
                                          const TokenFileOptions& options,
                                          Progress& progress) {
  progress.Start("reading", inputs.bytes());
  const auto width = static_cast<int64_t>(options.width);
  TokenFiles files;
  for (const InputFile& file : inputs.files) {
    if (file.bytes % width != 0) {
      return absl::InvalidArgumentError(
          StrCat(file.display, ": ", file.bytes, " bytes are no multiple of ",
                 width, " (", width == 2 ? "uint16" : "uint32", " ids)"));
    }
    ASSIGN_OR_RETURN(const int64_t largest,
                     ScanFile(root, file, options, progress));
    files.largest_id = std::max(files.largest_id, largest);
    ASSIGN_OR_RETURN(const OpenedFile opened, OpenInput(root, file));
    ASSIGN_OR_RETURN(
        const MappedFile mapped,
        MappedFile::Map(opened.fd.get(), file.display, file.bytes));
    const int64_t tokens = file.bytes / width;
    files.part.inputs.push_back(
        {file.display, file.bytes, SampledHashHex(mapped.view()), 0, tokens});
    files.part.tokens += tokens;
  }
  files.part.documents = static_cast<int64_t>(inputs.files.size());
  return files;
}

CachePart SliceTokens(const CachePart& part, ItemRange range) {
  CachePart slice;
  slice.tokens = range.last - range.first;
  int64_t start = 0;
  for (const CacheInput& input : part.inputs) {
    const int64_t first = std::max(range.first, start);
    const int64_t last = std::min(range.last, start + input.count);
    if (first < last) {
      CacheInput piece = input;
      piece.first = input.first + (first - start);
      piece.count = last - first;
      slice.inputs.push_back(std::move(piece));
    }
    start += input.count;
  }
  slice.documents = static_cast<int64_t>(slice.inputs.size());
  return slice;
}

}  // namespace lockstep
