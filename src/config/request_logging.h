// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tensorflow::serving {
class ModelConfig;
}

namespace tensord::config {

// Where sampled requests of a model go: logging_config of ModelServerConfig.
struct RequestLogging {
  double sampling_rate = 0;       // 0..1, of the answered requests.
  std::string filename_prefix{};  // Absolute; names of files begin with it.

  bool operator==(const RequestLogging&) const = default;
};

// Empty without logging_config. NOT_FOUND for a collector that does not exist, INVALID_ARGUMENT for
// settings that make no sense; both name the model.
absl::StatusOr<std::optional<RequestLogging>> ToRequestLogging(
    const tensorflow::serving::ModelConfig& model);

}  // namespace tensord::config
