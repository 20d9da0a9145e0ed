// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/litert/runtime.h"

namespace tensord::engine {

// In the root of a version directory.
inline constexpr char kLiteModelFile[] = "model.tflite";

// Runs model.tflite files, with as many interpreters as there will be runs at once, of one thread
// each. One that keeps state between runs has one interpreter, as it has one state.
// Lifetime: the runtime outlives the engine and every model.
class LiteRtEngine : public Engine {
 public:
  // The runtime, or why there is none: then no model can be loaded, for that reason.
  explicit LiteRtEngine(absl::StatusOr<const LiteRtRuntime*> runtime)
      : runtime_(std::move(runtime)) {}

  absl::StatusOr<std::unique_ptr<Model>> Load(const LoadOptions& options) override;

 private:
  const absl::StatusOr<const LiteRtRuntime*> runtime_;
};

}  // namespace tensord::engine
