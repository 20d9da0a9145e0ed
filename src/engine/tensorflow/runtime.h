// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tensorflow/c_api.h"

namespace tensord::engine {

enum class SymbolScope {
  kLocal,
  kGlobal,  // For op libraries that do not themselves name the runtime as needed.
};

// The runtime's libraries, opened into this process for good: they cannot be unloaded.
//
// Opening runs their static initialisers, which start no thread and read TF_* and XLA_FLAGS from
// the environment. It calls no TF_* function, so that the process may still fork.
class Runtime {
 public:
  // FAILED_PRECONDITION, with the loader's words, or with every function that is missing.
  static absl::StatusOr<Runtime> Open(const std::string& directory, SymbolScope scope);

  const TensorFlowApi& api() const { return *api_; }
  const std::string& directory() const { return directory_; }

 private:
  Runtime(std::string directory, std::unique_ptr<TensorFlowApi> api)
      : directory_(std::move(directory)), api_(std::move(api)) {}

  std::string directory_;
  std::unique_ptr<TensorFlowApi> api_;
};

struct StatusDeleter {
  const TensorFlowApi* api;
  void operator()(TF_Status* status) const { api->TF_DeleteStatus(status); }
};
using StatusPointer = std::unique_ptr<TF_Status, StatusDeleter>;
inline StatusPointer NewStatus(const TensorFlowApi& api) {
  return StatusPointer(api.TF_NewStatus(), StatusDeleter{&api});
}

// The same code (they are numbered alike) and words.
absl::Status ToStatus(const TensorFlowApi& api, const TF_Status* status);

}  // namespace tensord::engine
