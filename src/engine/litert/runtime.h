// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/find_libraries.h"
#include "engine/litert/c_api.h"

namespace tensord::engine {

inline constexpr char kLiteRtLibrary[] = "libLiteRt.so";

const LibraryPackage& LiteRtPackage();

// LiteRT's library, opened into this process for good. Opening it starts no thread, and calls no
// LiteRt* function, so that the process may still fork.
class LiteRtRuntime {
 public:
  // FAILED_PRECONDITION, with the loader's words, or with every function that is missing.
  static absl::StatusOr<LiteRtRuntime> Open(const std::string& directory);

  const LiteRtApi& api() const { return *api_; }
  const std::string& directory() const { return directory_; }
  const std::string& version() const { return version_; }  // "LiteRT 2.3.0"

 private:
  LiteRtRuntime(std::string directory, std::string version, std::unique_ptr<LiteRtApi> api)
      : directory_(std::move(directory)), version_(std::move(version)), api_(std::move(api)) {}

  std::string directory_;
  std::string version_;
  std::unique_ptr<LiteRtApi> api_;
};

// Of a call, with what it was made for in front.
absl::Status ToStatus(LiteRtStatus status, std::string_view what);

}  // namespace tensord::engine
