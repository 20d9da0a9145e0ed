# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0

# What nearly every file includes, read once: Abseil's status brings Cord along and takes longer to read
# than most of our files. No header of ours is among them, so an edit compiles what it must and no more.
# The Clang presets do without, so that an include that is missing is found there.
#   tensord_precompile(channel)                a target whose flags are tensord_flags alone
#   tensord_precompile(channel_test TEST)      a test of tensord_module, with GoogleTest's headers
option(TENSORD_PRECOMPILE "Common headers are precompiled (GCC)" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(TENSORD_PRECOMPILE OFF)
endif()

if(TENSORD_PRECOMPILE)
  # What comes out of a precompiled header is no system header to GCC 12, and it finds faults in its own
  # string and variant that are none. The sanitizers and Clang look for the true ones.
  target_compile_options(tensord_flags INTERFACE -Wno-array-bounds -Wno-maybe-uninitialized
                         -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  # Programs are compiled as libraries are: a precompiled header fits one way alone.
  set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/precompiled.cc" CONTENT "")
  set(common <algorithm> <memory> <string> <string_view> <utility> <vector>
             <absl/functional/any_invocable.h> <absl/status/statusor.h> <absl/time/time.h>)
  add_library(tensord_precompiled OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/precompiled.cc")
  target_link_libraries(tensord_precompiled PRIVATE tensord_flags absl::statusor)
  target_precompile_headers(tensord_precompiled PRIVATE ${common})

  add_library(tensord_precompiled_test OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/precompiled.cc")
  target_link_libraries(tensord_precompiled_test PRIVATE tensord_flags absl::statusor GTest::gmock)
  target_precompile_headers(tensord_precompiled_test PRIVATE ${common} <gmock/gmock.h> <gtest/gtest.h>)
  if(TENSORD_SANITIZE)
    target_compile_options(tensord_precompiled_test PRIVATE -O0)  # As cmake/module.cmake compiles tests.
  endif()
endif()

function(tensord_precompile target)
  if(TENSORD_PRECOMPILE AND ARGN STREQUAL "TEST")
    target_precompile_headers(${target} REUSE_FROM tensord_precompiled_test)
  elseif(TENSORD_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM tensord_precompiled)
  endif()
endfunction()
