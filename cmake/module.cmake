# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0

# One folder = one library = one namespace.
#   tensord_module(NAME sched FILES a.h a.cc TESTS a_test.cc DEPS tensord::tensor absl::status)
# makes the library tensord_<name> (alias tensord::<name>) and, when TESTS are given, one test
# program <name>_test.
function(tensord_module)
  cmake_parse_arguments(M "" "NAME" "FILES;TESTS;DEPS;TEST_DEPS" ${ARGN})
  set(target tensord_${M_NAME})
  set(headers ${M_FILES})
  list(FILTER headers INCLUDE REGEX "\\.h$")
  set(sources ${M_FILES})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  if(sources)
    add_library(${target} STATIC ${M_FILES})
    tensord_precompile(${target})
    if(TENSORD_SANITIZE AND NOT TENSORD_FUZZ)
      # Sanitizers make every instantiation dear: eight files share theirs. So names without linkage are
      # unique within a folder.
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    endif()
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(tensord::${M_NAME} ALIAS ${target})
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/src"
                 FILES ${headers})
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} ${scope} tensord_flags ${M_DEPS})
  if(M_TESTS)
    add_executable(${M_NAME}_test ${M_TESTS})
    if(TENSORD_SANITIZE)
      # Tests are compiled far more often than they run: half the time, and what they test stays -O1.
      set_source_files_properties(${M_TESTS} PROPERTIES COMPILE_OPTIONS "-O0")
    endif()
    tensord_precompile(${M_NAME}_test TEST)
    target_link_libraries(${M_NAME}_test PRIVATE ${target} ${M_TEST_DEPS} GTest::gmock GTest::gtest_main)
    add_test(NAME ${M_NAME}_test COMMAND ${M_NAME}_test)
  endif()
endfunction()
