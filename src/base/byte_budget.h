// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tensord::base {

// A ledger of bytes held on behalf of clients, so that their sum has a limit however many they are.
//
// Threads: any. Lifetime: outlives every BytesHeld.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit) : limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // False, and nothing taken, when the limit would be passed.
  [[nodiscard]] bool TryTake(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  // REQUIRES: that many were taken.
  void Return(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// Some bytes of a budget; destroying it gives them back. Threads: one at a time.
class BytesHeld {
 public:
  explicit BytesHeld(ByteBudget* budget) : budget_(budget) {}
  BytesHeld(BytesHeld&& from) noexcept
      : budget_(from.budget_), bytes_(std::exchange(from.bytes_, 0)) {}
  BytesHeld& operator=(BytesHeld&& from) noexcept {
    if (this != &from) {
      Clear();
      budget_ = from.budget_;
      bytes_ = std::exchange(from.bytes_, 0);
    }
    return *this;
  }
  ~BytesHeld() { Clear(); }

  // Holds at least `bytes` from now on; false, and nothing changed, when the budget has too few.
  [[nodiscard]] bool GrowTo(uint64_t bytes) {
    if (bytes <= bytes_) return true;
    if (!budget_->TryTake(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }
  void Clear() {
    if (bytes_ > 0) budget_->Return(std::exchange(bytes_, 0));
  }
  uint64_t bytes() const { return bytes_; }
  const ByteBudget& budget() const { return *budget_; }

 private:
  ByteBudget* budget_;
  uint64_t bytes_ = 0;
};

}  // namespace tensord::base
