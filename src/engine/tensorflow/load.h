// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/tensorflow/runtime.h"

namespace tensord::engine {

// Loads SavedModels into sessions of the given runtime.
// Lifetime: the runtime outlives the engine and every model.
class TensorFlowEngine : public Engine {
 public:
  explicit TensorFlowEngine(const Runtime* runtime) : runtime_(runtime) {}

  // Restores variables and runs the model's init operation. The runtime's own status, with the step
  // that failed in front.
  absl::StatusOr<std::unique_ptr<Model>> Load(const LoadOptions& options) override;

 private:
  const Runtime* const runtime_;
};

}  // namespace tensord::engine
