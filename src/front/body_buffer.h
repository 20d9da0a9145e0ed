// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/byte_budget.h"

namespace tensord::front {

// The bytes of one body while it arrives. Memory comes from a budget and is not zeroed first.
//
// Threads: one at a time. Lifetime: the budget outlives it.
class BodyBuffer {
 public:
  explicit BodyBuffer(base::ByteBudget* budget) : held_(budget) {}
  BodyBuffer(BodyBuffer&&) = default;
  BodyBuffer& operator=(BodyBuffer&&) = default;

  // Room for `capacity` bytes in all. False, and nothing changed, when the budget or the machine
  // has no memory left.
  [[nodiscard]] bool Reserve(size_t capacity);
  // Appends, at least doubling the room when it is used up. False as for Reserve.
  [[nodiscard]] bool Append(std::span<const std::byte> bytes);

  // Reserved and unused; Commit tells how much of its start was filled.
  std::span<std::byte> Free() { return {data_.get() + size_, capacity_ - size_}; }
  void Commit(size_t bytes) { size_ += bytes; }

  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  std::span<std::byte> mutable_bytes() { return {data_.get(), size_}; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  // Gives the memory back.
  void Clear();

 private:
  struct Free_ {
    void operator()(std::byte* data) const { std::free(data); }
  };

  base::BytesHeld held_;
  std::unique_ptr<std::byte, Free_> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace tensord::front
