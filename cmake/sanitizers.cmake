# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0

# Compile options of everything we write, as one interface library.
set(TENSORD_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=: address,undefined or thread")
option(TENSORD_WERROR "Warnings are errors" ON)
option(TENSORD_FUZZ "Fuzz targets become libFuzzer programs (Clang)" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(tensord_flags INTERFACE)
target_compile_options(tensord_flags INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion)
if(TENSORD_WERROR)
  target_compile_options(tensord_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(tensord_flags INTERFACE -Wthread-safety)
endif()
if(TENSORD_SANITIZE)
  target_compile_options(tensord_flags INTERFACE -fsanitize=${TENSORD_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tensord_flags INTERFACE -fsanitize=${TENSORD_SANITIZE})
endif()
if(TENSORD_SANITIZE MATCHES "undefined")
  # A fifth of the time to compile; AddressSanitizer stops at a null pointer or past an object, too.
  target_compile_options(tensord_flags INTERFACE -fno-sanitize=null,vptr,object-size)
endif()
if(TENSORD_SANITIZE STREQUAL "thread")
  # GCC writes short copies out without instrumentation: as calls, ThreadSanitizer sees them.
  target_compile_options(tensord_flags INTERFACE -fno-builtin-memcpy -fno-builtin-memmove
                         -fno-builtin-memset)
  # The distribution's protobuf was built without: its headers must not see ThreadSanitizer, or maps
  # have another layout here than there.
  target_compile_options(tensord_flags INTERFACE -U__SANITIZE_THREAD__)
  target_compile_definitions(tensord_flags INTERFACE TENSORD_TSAN)
endif()
# The linker that is several times faster than the default one, where it is installed.
find_program(TENSORD_MOLD mold)
if(TENSORD_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_options(tensord_flags INTERFACE -fuse-ld=mold)
endif()
# A fuzzer needs to see which branches of our code an input takes.
if(TENSORD_FUZZ)
  target_compile_options(tensord_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
