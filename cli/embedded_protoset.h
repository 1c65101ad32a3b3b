// The descriptor set of the job file's proto, with its comments, as protoc made
// it; put into the program at build time (write_bytes.cmake).
#ifndef LOCKSTEP_CLI_EMBEDDED_PROTOSET_H_
#define LOCKSTEP_CLI_EMBEDDED_PROTOSET_H_

#include <string_view>

namespace lockstep {

// A serialized google.protobuf.FileDescriptorSet.
std::string_view EmbeddedProtoset();

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_EMBEDDED_PROTOSET_H_
