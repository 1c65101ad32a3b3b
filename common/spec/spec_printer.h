// Prints any of our protos as JSON or YAML by reflection, with the words of
// spec_reader.h: proto field names; enums as words (job states, outcomes' and
// causes' words as design.md gives them); 64-bit integers as JSON numbers'
// strings ("12", as proto JSON does); scalars without presence always, even at
// zero (but no enum without a value); absent optional fields and messages not
// at all; lists always. In YAML integers are plain, a ByteSize is `512MiB` and
// a DeviceRange of one number that number, so that a job file reads back.
#ifndef LOCKSTEP_COMMON_SPEC_SPEC_PRINTER_H_
#define LOCKSTEP_COMMON_SPEC_SPEC_PRINTER_H_

#include <string>

#include "google/protobuf/message.h"
#include "nlohmann/json_fwd.hpp"

namespace lockstep {

enum class JsonStyle { kLine, kIndented };

std::string ToJson(const google::protobuf::Message& message, JsonStyle style);
std::string ToYaml(const google::protobuf::Message& message);

// JSON as YAML.
std::string JsonToYaml(const nlohmann::ordered_json& value);

// One field as ToJson would print its value on a line; "absent" where it would
// not be printed.
std::string FieldText(const google::protobuf::Message& message,
                      const google::protobuf::FieldDescriptor& field);

// The word of an enum value: JOB_STATE_PENDING is "PENDING", SCHEDULE_1F1B is
// "1f1b".
std::string EnumWord(const google::protobuf::EnumValueDescriptor& value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPEC_SPEC_PRINTER_H_
