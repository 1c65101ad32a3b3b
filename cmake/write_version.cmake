# Writes OUTPUT, which defines lockstep::Version(), if it would change.
set(hash "")
if(GIT)
  execute_process(
    COMMAND ${GIT} rev-parse --short=9 HEAD
    WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE hash
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(hash)
  set(VERSION "${VERSION}+g${hash}")
endif()
set(text
    "#include \"common/version.h\"

namespace lockstep {

std::string_view Version() { return \"${VERSION}\"; }

}  // namespace lockstep
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
