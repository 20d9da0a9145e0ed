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
find_package(Threads REQUIRED)
find_package(Boost REQUIRED)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
find_package(CLI11 REQUIRED)
