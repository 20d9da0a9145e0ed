// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tensor/tensor.h"

#include <new>

namespace tensord::tensor {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

Buffer::Buffer(size_t size)
    : data_(static_cast<std::byte*>(::operator new(size, kAlignment))), size_(size) {}

void Buffer::Free::operator()(std::byte* data) const { ::operator delete(data, kAlignment); }

}  // namespace tensord::tensor
