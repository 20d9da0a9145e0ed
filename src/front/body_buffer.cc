// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/body_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/limits.h"

namespace tensord::front {
namespace {

// Large bodies are charged in steps, so that the ledger is not touched with each read.
constexpr size_t kChargeStepBytes = size_t{64} << 10;

// Up to here a body is the allocator's business; above, whole pages are cheaper.
constexpr size_t kSmallBytesMax = size_t{32} << 10;

}  // namespace

bool BodyBuffer::MakeRoom(uint64_t expected) {
  const uint64_t step = std::max<uint64_t>(size_, limits::kBodyFirstBytes);
  return Grow(static_cast<size_t>(std::min(expected, size_ + step)));
}

bool BodyBuffer::Append(std::span<const std::byte> bytes, uint64_t expected) {
  const size_t needed = size_ + bytes.size();
  if (needed > capacity_) {
    const uint64_t step = std::max<uint64_t>(needed, limits::kBodyFirstBytes);
    const uint64_t wanted =
        expected > 0 ? std::min(expected, needed + step) : uint64_t{2} * capacity_;
    if (!Grow(static_cast<size_t>(std::max<uint64_t>(needed, wanted)))) return false;
  }
  if (!Charge(needed)) return false;
  if (!bytes.empty()) std::memcpy(data() + size_, bytes.data(), bytes.size());
  size_ = needed;
  return true;
}

std::span<std::byte> BodyBuffer::Writable(size_t most) {
  const size_t bytes = std::min(most, capacity_ - size_);
  if (bytes == 0 || !Charge(size_ + bytes)) return {};
  return {data() + size_, bytes};
}

void BodyBuffer::ReceiveInto(std::span<std::byte> memory, std::shared_ptr<const void> owner) {
  if (size_ > 0) std::memcpy(memory.data(), data(), size_);
  small_.reset();
  large_.Clear();
  lent_ = memory.data();
  owner_ = std::move(owner);
  capacity_ = memory.size();
}

bool BodyBuffer::Grow(size_t capacity) {
  if (capacity <= capacity_) return true;
  if (lent_ == nullptr) return GrowOwn(capacity);
  // More than was said: it goes on in memory of its own.
  std::byte* const from = std::exchange(lent_, nullptr);
  const size_t lent_bytes = std::exchange(capacity_, 0);
  if (!GrowOwn(capacity)) {
    lent_ = from;
    capacity_ = lent_bytes;
    return false;
  }
  if (size_ > 0) std::memcpy(data(), from, size_);
  owner_.reset();
  return true;
}

bool BodyBuffer::GrowOwn(size_t capacity) {
  if (capacity > kSmallBytesMax) {
    if (!large_.Grow(capacity)) return false;
    if (small_ != nullptr) {
      std::memcpy(large_.data(), small_.get(), size_);
      small_.reset();
    }
    capacity_ = large_.capacity();
    return true;
  }
  std::unique_ptr<std::byte[]> grown(new (std::nothrow) std::byte[capacity]);
  if (grown == nullptr) return false;
  if (small_ != nullptr && size_ > 0) std::memcpy(grown.get(), small_.get(), size_);
  small_ = std::move(grown);
  capacity_ = capacity;
  return true;
}

bool BodyBuffer::Charge(size_t size) {
  if (size <= held_.bytes()) return true;
  const bool large = size > kChargeStepBytes;
  return held_.GrowTo(large ? std::min(size + kChargeStepBytes, std::max(size, capacity_)) : size);
}

void BodyBuffer::Clear() {
  small_.reset();
  large_.Clear();
  lent_ = nullptr;
  owner_.reset();
  held_.Clear();
  size_ = 0;
  capacity_ = 0;
}

}  // namespace tensord::front
