// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "front/exchange.h"

namespace tensord::front {

// What a call wants to do.
enum class Operation : uint8_t {
  kInfer,   // Run a model.
  kRead,    // Status, metadata, list of models.
  kManage,  // Change which models are served.
  kProbe,   // Liveness, readiness, health, metrics.
};

// The one point that every call passes before anything is done for it, whatever its protocol.
// Open today: everybody who reaches a port may do everything, as with the original. `model` is
// empty where a call concerns none.
absl::Status Authorize(const RequestHead& caller, Operation operation, std::string_view model);

}  // namespace tensord::front
