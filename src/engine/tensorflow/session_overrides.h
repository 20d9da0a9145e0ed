// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::engine {

// What a version's assets.extra/saved_model_config.pb (a tensorflow.serving.SavedModelConfig) asks
// of its session.
struct SessionOverrides {
  // To be appended to a serialized ConfigProto: protobuf merges what stands there twice.
  std::string config;
  std::vector<std::string> warnings;  // What it asks for and nobody here can do.
};

// INVALID_ARGUMENT for bytes that are no SavedModelConfig.
absl::StatusOr<SessionOverrides> ParseSavedModelConfig(std::string_view bytes);

// Of the version in that directory: nothing without such a file, a warning for a broken one, as in
// the original.
SessionOverrides ReadSessionOverrides(const std::string& version_directory);

}  // namespace tensord::engine
