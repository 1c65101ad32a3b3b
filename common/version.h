// The version of this build, "0.1.0+g1a2b3c4d5". Its source is generated
// (cmake/write_version.cmake); link lockstep_version.
#ifndef LOCKSTEP_COMMON_VERSION_H_
#define LOCKSTEP_COMMON_VERSION_H_

#include <string_view>

namespace lockstep {

std::string_view Version();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_VERSION_H_
