# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0

# Everything comes from the distribution's packages; nothing is downloaded by the build.
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(GTest REQUIRED)
find_package(Protobuf REQUIRED)
find_package(spdlog REQUIRED)
# By pkg-config: the CMake package would also ask for civetweb and curl, which core does not use.
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
find_package(ZLIB REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost REQUIRED)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
find_package(CLI11 REQUIRED)

# For tensord-worker alone (src/worker/CMakeLists.txt says why): Abseil and libseccomp as archives.
add_library(tensord_absl_static INTERFACE)
find_library(TENSORD_ABSL_STATUS_ARCHIVE libabsl_status.a REQUIRED)
get_filename_component(tensord_absl_archives "${TENSORD_ABSL_STATUS_ARCHIVE}" DIRECTORY)
file(GLOB tensord_absl_archives "${tensord_absl_archives}/libabsl_*.a")
list(FILTER tensord_absl_archives EXCLUDE REGEX "flags|random|hash|failure_signal|leak_check")
target_link_libraries(tensord_absl_static INTERFACE
  -Wl,--start-group ${tensord_absl_archives} -Wl,--end-group)
add_library(tensord_seccomp_static INTERFACE)
find_library(TENSORD_SECCOMP_ARCHIVE libseccomp.a REQUIRED)
target_link_libraries(tensord_seccomp_static INTERFACE "${TENSORD_SECCOMP_ARCHIVE}")
