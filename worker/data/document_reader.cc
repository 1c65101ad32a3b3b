#include "worker/data/document_reader.h"

#include <utility>

#include "common/status_macros.h"
#include "worker/data/block_reader.h"
#include "worker/data/csv_reader.h"
#include "worker/data/jsonl_reader.h"
#include "worker/data/str_cat.h"
#include "worker/data/text_reader.h"

namespace lockstep {

std::string DocumentOrigin::Prefix() const {
  return StrCat(file, ":", line, ": ");
}

absl::Status ReadDocuments(const DataRoot& root, const Inputs& inputs,
                           const DocumentFields& fields, const DataPart& part,
                           DocumentVisitor& visitor) {
  int64_t document = 0;
  for (const InputFile& file : inputs.files) {
    const ItemRange range = part.range().value_or(ItemRange{0, file.bytes});
    switch (inputs.format) {
      case v1::DATA_FORMAT_TEXT: {
        if (part.Contains(document++)) {
          ASSIGN_OR_RETURN(BlockReader reader,
                           BlockReader::Open(root, file, range));
          RETURN_IF_ERROR(ReadText(reader, visitor));
        }
        break;
      }
      case v1::DATA_FORMAT_JSONL: {
        ASSIGN_OR_RETURN(BlockReader reader,
                         BlockReader::Open(root, file, range));
        RETURN_IF_ERROR(
            ReadJsonl(std::move(reader), fields, part, document, visitor));
        break;
      }
      case v1::DATA_FORMAT_CSV: {
        ASSIGN_OR_RETURN(BlockReader reader,
                         BlockReader::Open(root, file, range));
        RETURN_IF_ERROR(ReadCsv(reader, fields, part, document, visitor));
        break;
      }
      default:
        return absl::InternalError(StrCat(file.display, ": ",
                                          FormatName(inputs.format),
                                          " data has no documents to read"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountDocuments(const DataRoot& root,
                                       const Inputs& inputs,
                                       const DocumentFields& fields,
                                       DocumentVisitor& progress) {
  if (inputs.format == v1::DATA_FORMAT_TEXT) {
    return static_cast<int64_t>(inputs.files.size());
  }
  int64_t documents = 0;
  for (const InputFile& file : inputs.files) {
    ASSIGN_OR_RETURN(BlockReader reader,
                     BlockReader::Open(root, file, {0, file.bytes}));
    if (inputs.format == v1::DATA_FORMAT_JSONL) {
      RETURN_IF_ERROR(ReadJsonl(std::move(reader), fields, DataPart::Nothing(),
                                documents, progress));
    } else {
      RETURN_IF_ERROR(
          ReadCsv(reader, fields, DataPart::Nothing(), documents, progress));
    }
  }
  return documents;
}

}  // namespace lockstep
