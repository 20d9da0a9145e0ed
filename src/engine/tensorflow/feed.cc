// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/feed.h"

#include <cstring>

#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/string_layout.h"

namespace tensord::engine {
namespace {

void LetGo(void*, size_t, void* hold) { static_cast<InputHold*>(hold)->Drop(); }

// A place for tensors without elements, which the runtime still wants a pointer for.
alignas(64) std::byte no_elements[64];

absl::Status NoMemory(const tensor::TensorView& view) {
  return absl::ResourceExhaustedError(base::Cat("the runtime made no ",
                                                tensor::DTypeName(view.dtype), " tensor of shape ",
                                                view.shape.ToString()));
}

}  // namespace

absl::Status Feeds::Add(const tensor::TensorView& view, bool copies, InputHold* hold) {
  ASSIGN_OR_RETURN(TF_Tensor * tensor, view.dtype == tensor::DType::kString
                                           ? MakeString(view)
                                           : MakeFixed(view, copies, hold));
  tensors_.push_back(tensor);
  return absl::OkStatus();
}

void Feeds::Clear() {
  for (TF_Tensor* tensor : tensors_) api_->TF_DeleteTensor(tensor);
  tensors_.clear();
}

absl::StatusOr<TF_Tensor*> Feeds::MakeString(const tensor::TensorView& view) {
  const auto elements = static_cast<uint64_t>(view.shape.elements());
  ASSIGN_OR_RETURN(const tensor::StringReader strings,
                   tensor::StringReader::Open(view.bytes, elements));
  TF_Tensor* tensor =
      api_->TF_AllocateTensor(static_cast<int>(view.dtype), view.shape.dims().data(),
                              view.shape.rank(), elements * sizeof(TF_TString));
  if (tensor == nullptr) return NoMemory(view);
  auto* out = static_cast<TF_TString*>(api_->TF_TensorData(tensor));
  for (uint64_t i = 0; i < elements; ++i) {
    api_->TF_StringInit(out + i);
    api_->TF_StringCopy(out + i, strings[i].data(), strings[i].size());
  }
  return tensor;
}

absl::StatusOr<TF_Tensor*> Feeds::MakeFixed(const tensor::TensorView& view, bool copies,
                                            InputHold* hold) {
  ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(view.dtype, view.shape));
  if (!tensor::IsServable(view.dtype) || bytes != view.bytes.size()) {
    return absl::InvalidArgumentError(
        base::Cat("a ", tensor::DTypeName(view.dtype), " tensor of shape ", view.shape.ToString(),
                  " needs ", bytes, " bytes, not ", view.bytes.size()));
  }
  const int dtype = static_cast<int>(view.dtype);
  const int64_t* dims = view.shape.dims().data();
  if (copies) {
    TF_Tensor* tensor = api_->TF_AllocateTensor(dtype, dims, view.shape.rank(), bytes);
    if (tensor == nullptr) return NoMemory(view);
    if (bytes > 0) std::memcpy(api_->TF_TensorData(tensor), view.bytes.data(), bytes);
    return tensor;
  }
  // The runtime takes a mutable pointer, but never writes to memory that it does not own.
  auto* data = bytes > 0 ? const_cast<std::byte*>(view.bytes.data()) : no_elements;
  hold->Add();
  // On failure the runtime lets go at once, too.
  TF_Tensor* tensor = api_->TF_NewTensor(dtype, dims, view.shape.rank(), data, bytes, LetGo, hold);
  if (tensor == nullptr) return NoMemory(view);
  return tensor;
}

}  // namespace tensord::engine
