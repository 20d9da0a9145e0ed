// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/body_buffer.h"

#include <algorithm>
#include <cstring>

namespace tensord::front {

bool BodyBuffer::Reserve(size_t capacity) {
  if (capacity <= capacity_) return true;
  if (!held_.GrowTo(capacity)) return false;
  // realloc moves large blocks by their page tables, not by copying.
  void* grown = std::realloc(data_.get(), capacity);
  if (grown == nullptr) return false;
  (void)data_.release();
  data_.reset(static_cast<std::byte*>(grown));
  capacity_ = capacity;
  return true;
}

bool BodyBuffer::Append(std::span<const std::byte> bytes) {
  const size_t needed = size_ + bytes.size();
  if (needed > capacity_ && !Reserve(std::max(needed, 2 * capacity_))) return false;
  if (!bytes.empty()) std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
  size_ = needed;
  return true;
}

void BodyBuffer::Clear() {
  data_.reset();
  held_.Clear();
  size_ = 0;
  capacity_ = 0;
}

}  // namespace tensord::front
