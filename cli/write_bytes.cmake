# Writes INPUT's bytes as a C++ array: cmake -DINPUT= -DOUTPUT= -P this
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(
  WRITE ${OUTPUT}
  "// Generated from the job file's proto.
#include \"cli/embedded_protoset.h\"

namespace lockstep {
namespace {

const unsigned char kBytes[] = {
${bytes}};

}  // namespace

std::string_view EmbeddedProtoset() {
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

}  // namespace lockstep
")
