// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/runtime.h"

#include <dlfcn.h>

#include <bit>

#include "base/text.h"
#include "engine/tensorflow/find_runtime.h"

namespace tensord::engine {
namespace {

// dlerror() may be null when another thread took the message; not so here, but the type allows it.
absl::Status LoaderError(std::string_view path) {
  const char* words = dlerror();
  return absl::FailedPreconditionError(
      base::Cat("cannot load ", path, ": ", words == nullptr ? "unknown error" : words));
}

void* FindFunction(void* first, void* second, const char* name) {
  void* function = dlsym(first, name);
  return function != nullptr ? function : dlsym(second, name);
}

}  // namespace

absl::StatusOr<Runtime> Runtime::Open(const std::string& directory, SymbolScope scope) {
#if defined(__x86_64__)
  // The libraries' static initialisers already use AVX: better words than an illegal instruction.
  if (!__builtin_cpu_supports("avx")) {
    return absl::FailedPreconditionError(
        "this CPU has no AVX, which the TensorFlow wheels need; on a virtual machine, choose a CPU "
        "model with AVX (for QEMU: -cpu host)");
  }
#endif
  const int flags = RTLD_NOW | (scope == SymbolScope::kGlobal ? RTLD_GLOBAL : RTLD_LOCAL);
  const std::string framework_path = base::Cat(directory, "/", kFrameworkLibrary);
  void* framework = dlopen(framework_path.c_str(), flags);
  if (framework == nullptr) return LoaderError(framework_path);
  const std::string runtime_path = base::Cat(directory, "/", kRuntimeLibrary);
  void* runtime = dlopen(runtime_path.c_str(), flags);
  if (runtime == nullptr) return LoaderError(runtime_path);

  auto api = std::make_unique<TensorFlowApi>();
  std::string missing;
#define TENSORD_TF_RESOLVE(result, name, parameters)                                       \
  api->name = std::bit_cast<decltype(api->name)>(FindFunction(runtime, framework, #name)); \
  if (api->name == nullptr) missing += " " #name;
  TENSORD_TF_FUNCTIONS(TENSORD_TF_RESOLVE)
#undef TENSORD_TF_RESOLVE
  if (!missing.empty()) {
    return absl::FailedPreconditionError(
        base::Cat("the TensorFlow libraries in ", directory,
                  " lack these functions; use the 2.21 wheel:", missing));
  }
  return Runtime(directory, std::move(api));
}

absl::Status ToStatus(const TensorFlowApi& api, const TF_Status* status) {
  const int code = api.TF_GetCode(status);
  if (code == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(code), api.TF_Message(status));
}

}  // namespace tensord::engine
