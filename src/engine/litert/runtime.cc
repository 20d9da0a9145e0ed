// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/runtime.h"

#include <dlfcn.h>

#include <bit>
#include <fstream>

#include "base/text.h"

namespace tensord::engine {
namespace {

// The package says its version only in Python: __version__ = "2.3.0".
std::string VersionOf(const std::string& directory) {
  constexpr std::string_view kBegin = "__version__ = \"";
  std::ifstream file(directory + "/__init__.py");
  std::string line;
  for (int i = 0; i < 50 && std::getline(file, line); ++i) {
    if (!line.starts_with(kBegin)) continue;
    return base::Cat("LiteRT ", line.substr(kBegin.size(), line.rfind('"') - kBegin.size()));
  }
  return "LiteRT";
}

}  // namespace

const LibraryPackage& LiteRtPackage() {
  static const LibraryPackage kPackage = {
      .libraries = {kLiteRtLibrary},
      .package = "ai_edge_litert",
      .option = "litert_library_dir",
      .variable = "TENSORD_LITERT_DIR",
      .advice =
          "no libLiteRt.so, which runs TensorFlow Lite models: pip install ai-edge-litert "
          "(2.2 or 2.3)"};
  return kPackage;
}

absl::StatusOr<LiteRtRuntime> LiteRtRuntime::Open(const std::string& directory) {
  const std::string path = base::Cat(directory, "/", kLiteRtLibrary);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* words = dlerror();
    return absl::FailedPreconditionError(
        base::Cat("cannot load ", path, ": ", words == nullptr ? "unknown error" : words));
  }
  auto api = std::make_unique<LiteRtApi>();
  std::string missing;
#define TENSORD_LITERT_RESOLVE(result, name, parameters)                 \
  api->name = std::bit_cast<decltype(api->name)>(dlsym(library, #name)); \
  if (api->name == nullptr) missing += " " #name;
  TENSORD_LITERT_FUNCTIONS(TENSORD_LITERT_RESOLVE)
#undef TENSORD_LITERT_RESOLVE
  if (!missing.empty()) {
    return absl::FailedPreconditionError(base::Cat(
        path, " lacks these functions; use ai-edge-litert 2.2 or 2.3 (pip install):", missing));
  }
  return LiteRtRuntime(directory, VersionOf(directory), std::move(api));
}

absl::Status ToStatus(LiteRtStatus status, std::string_view what) {
  switch (status) {
    case kLiteRtStatusOk:
      return absl::OkStatus();
    case kLiteRtStatusErrorInvalidArgument:
      return absl::InvalidArgumentError(base::Cat(what, ": LiteRT refuses it"));
    case kLiteRtStatusErrorMemoryAllocationFailure:
      return absl::ResourceExhaustedError(base::Cat(what, ": LiteRT got no memory"));
    case kLiteRtStatusErrorUnsupported:
      return absl::UnimplementedError(base::Cat(what, ": LiteRT does not support it"));
    case kLiteRtStatusErrorFileIO:
    case kLiteRtStatusErrorInvalidFlatbuffer:
      return absl::InvalidArgumentError(
          base::Cat(what, ": it is no TensorFlow Lite model, or is damaged or cut"));
    default:
      return absl::InternalError(base::Cat(what, ": LiteRT's error ", static_cast<int>(status)));
  }
}

}  // namespace tensord::engine
