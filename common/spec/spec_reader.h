// Reads YAML or JSON text into a proto by reflection: the proto is the schema.
//
// Words: an enum's word is its value's name without prefix in lower case;
// ByteSize takes `512MiB`, Duration `15s` or `2m`, DeviceRange a number or
// {min, max}, a repeated field a single value too, ParallelSpec `auto` (the
// absent message). The field `action` of a JobSpec is no key.
//
// Errors: INVALID_ARGUMENT "FILE:LINE:COLUMN: ..." for syntax, an unknown key
// (with the nearest known one), a duplicate key, a wrong type or range. Aliases
// and anchors are refused; depth is at most 32, text at most 1 MiB.
#ifndef LOCKSTEP_COMMON_SPEC_SPEC_READER_H_
#define LOCKSTEP_COMMON_SPEC_SPEC_READER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep {

// `name` is the file's name for messages. `message` is merged into.
absl::Status ReadSpecText(std::string_view text, std::string_view name,
                          google::protobuf::Message& message);

// Applies one `--set path.to.key=VALUE`; VALUE is YAML.
absl::Status SetSpecField(std::string_view assignment,
                          google::protobuf::Message& message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPEC_SPEC_READER_H_
