// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/op_list.h"

#include <dlfcn.h>

#include <bit>

#include "base/protobuf_wire.h"
#include "base/text.h"
#include "engine/tensorflow/find_runtime.h"

namespace tensord::engine {
namespace {

constexpr uint32_t kOps = 1;   // Of tensorflow.OpList.
constexpr uint32_t kName = 1;  // Of tensorflow.OpDef.

// Not of the functions that serving needs: a runtime without it serves all the same.
TF_Buffer* AllOps(const Runtime& runtime) {
  const std::string path = base::Cat(runtime.directory(), "/", kRuntimeLibrary);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);  // Open already, for good.
  void* function = library == nullptr ? nullptr : dlsym(library, "TF_GetAllOpList");
  if (function == nullptr) return nullptr;
  return std::bit_cast<TF_Buffer* (*)()>(function)();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListOps(const Runtime& runtime,
                                                 const std::vector<std::string>& op_libraries) {
  const TensorFlowApi& api = runtime.api();
  for (const std::string& path : op_libraries) {
    const StatusPointer status = NewStatus(api);
    TF_Library* library = api.TF_LoadLibrary(path.c_str(), status.get());
    if (library == nullptr) {
      return base::WithContext(ToStatus(api, status.get()), base::Cat("op library ", path, ": "));
    }
    api.TF_DeleteLibraryHandle(library);  // Frees the handle only.
  }
  TF_Buffer* buffer = AllOps(runtime);
  if (buffer == nullptr) return absl::UnimplementedError("the runtime does not list its ops");
  const std::string_view bytes(static_cast<const char*>(buffer->data), buffer->length);
  std::vector<std::string> names;
  for (base::WireReader list(bytes); list.Next();) {
    if (list.field() != kOps) continue;
    for (base::WireReader op(list.bytes()); op.Next();) {
      if (op.field() == kName) names.emplace_back(op.bytes());
    }
  }
  api.TF_DeleteBuffer(buffer);
  return names;
}

}  // namespace tensord::engine
