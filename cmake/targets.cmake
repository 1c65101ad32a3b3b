# The kinds of target that folders are made of.

# What is installed, and what integration tests start.
set(LOCKSTEP_PROGRAMS lockstep lockstep-coordinator lockstep-worker
                      lockstep-rank lockstep-tokenizer-trainer)

# Builds what is installed, without the tests.
add_custom_target(programs)

# lockstep_library(NAME SOURCES file... DEPS target... PRIVATE_DEPS target...):
# one static library per folder; headers are included from the root of the
# repository. PRIVATE_DEPS are linked, but their flags stay in this folder.
function(lockstep_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LIBRARIES ${name})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# Builds all tests labelled `unit`, and what they need.
add_custom_target(unit_tests)

# lockstep_test(NAME LABEL label... SOURCES file... DEPS target...): one test
# program per folder, run as one CTest test.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABEL;SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(LOCKSTEP_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock_main)
  if(LOCKSTEP_SANITIZE STREQUAL "thread")
    target_sources(${name}
                   PRIVATE ${PROJECT_SOURCE_DIR}/tests/sanitizers/tsan_absl.cc)
    target_link_libraries(${name} PRIVATE absl::time ${CMAKE_DL_LIBS})
    # Shared libraries must find it.
    target_link_options(${name} PRIVATE -rdynamic)
  endif()
  # No -fPIE of its own, which precompiled headers would have to have as well.
  set_target_properties(
    ${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
                       POSITION_INDEPENDENT_CODE OFF)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_TESTS ${name})
  add_test(NAME ${name} COMMAND ${name})
  set(suppressions ${PROJECT_SOURCE_DIR}/tests/sanitizers)
  set_tests_properties(
    ${name}
    PROPERTIES
      LABELS "${ARG_LABEL}"
      TIMEOUT ${ARG_TIMEOUT}
      ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${suppressions}/tsan.supp;LSAN_OPTIONS=suppressions=${suppressions}/lsan.supp;UBSAN_OPTIONS=print_stacktrace=1"
  )
  if(ARG_LABEL MATCHES "unit")
    add_dependencies(unit_tests ${name})
  elseif(ARG_LABEL MATCHES "integration|fault")
    # These start whole clusters; nothing else should take their cores.
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

# Builds the programs before a test that starts them.
function(lockstep_needs_programs test)
  foreach(program ${LOCKSTEP_PROGRAMS})
    if(TARGET ${program})
      add_dependencies(${test} ${program})
    endif()
  endforeach()
endfunction()

# Makes `target` use the precompiled headers of `from`, and compile all the same
# where its flags don't suit them.
function(lockstep_reuse_headers target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  target_include_directories(
    ${target} SYSTEM
    PRIVATE $<TARGET_PROPERTY:lockstep_proto,INTERFACE_INCLUDE_DIRECTORIES>
  )
endfunction()

# What waits for people and networks gains nothing from -O2, which takes half as
# long again to compile.
function(lockstep_optimize_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Gives all libraries and tests the precompiled headers of their kind. Kernels
# go without: they are compiled for several instruction sets.
function(lockstep_precompile_headers)
  get_property(libraries GLOBAL PROPERTY LOCKSTEP_LIBRARIES)
  foreach(library ${libraries})
    get_target_property(folder ${library} SOURCE_DIR)
    if(NOT folder MATCHES "/kernels(/|$)")
      lockstep_reuse_headers(${library} lockstep_headers)
    endif()
    if(folder MATCHES "/(cli|coordinator|common/spec|worker/agent|tests)(/|$)")
      lockstep_optimize_lightly(${library})
    endif()
  endforeach()
  get_property(tests GLOBAL PROPERTY LOCKSTEP_TESTS)
  foreach(test ${tests})
    lockstep_reuse_headers(${test} lockstep_test_headers)
    lockstep_optimize_lightly(${test})
  endforeach()
endfunction()
