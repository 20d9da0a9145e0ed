// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/byte_budget.h"
#include "base/recycled_block.h"

namespace tensord::front {

// The bytes of one body while it arrives. The budget is charged for what has come, not for what was
// announced: a claim costs its maker nothing, so it may cost nobody else anything either. Memory
// that was made room for and not written to is only address space.
//
// Threads: one at a time. Lifetime: the budget outlives it.
class BodyBuffer {
 public:
  explicit BodyBuffer(base::ByteBudget* budget) : held_(budget) {}
  BodyBuffer(BodyBuffer&&) = default;
  BodyBuffer& operator=(BodyBuffer&&) = default;

  // Room for more, of `expected` bytes in all: as much as has come, at least a first step.
  // False, and nothing changed, when the machine has no memory left.
  [[nodiscard]] bool MakeRoom(uint64_t expected);
  // Makes room as MakeRoom does, or doubling it when nothing is `expected`. False, and nothing
  // added, when the budget or the machine has no memory left.
  [[nodiscard]] bool Append(std::span<const std::byte> bytes, uint64_t expected = 0);

  // Where the next `most` bytes may be written, as far as there is room, with the budget charged
  // for them; empty when there is no room, or the budget is used up. Commit says how many were.
  std::span<std::byte> Writable(size_t most);
  void Commit(size_t bytes) { size_ += bytes; }

  std::span<const std::byte> bytes() const { return {data(), size_}; }
  std::span<std::byte> mutable_bytes() { return {data(), size_}; }
  size_t size() const { return size_; }
  bool full() const { return size_ == capacity_; }
  // From now on the bytes lie at the start of `memory`, those that have come included, for as long
  // as they fit there. REQUIRES: memory.size() >= size(). Lifetime: `owner` keeps the memory.
  void ReceiveInto(std::span<std::byte> memory, std::shared_ptr<const void> owner);
  // Gives the memory back.
  void Clear();

 private:
  std::byte* data() const {
    if (lent_ != nullptr) return lent_;
    return small_ != nullptr ? small_.get() : large_.data();
  }
  bool Grow(size_t capacity);
  bool GrowOwn(size_t capacity);
  bool Charge(size_t size);

  base::BytesHeld held_;
  std::unique_ptr<std::byte[]> small_;  // One of the three holds the bytes.
  base::RecycledBlock large_;
  std::byte* lent_ = nullptr;
  std::shared_ptr<const void> owner_;  // Of what is lent.
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace tensord::front
