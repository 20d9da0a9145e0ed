// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <utility>

namespace tensord::base {

// Pages for something large that comes and goes, such as a request's body. Freed blocks are kept,
// up to limits::kRecycledBytesKept in all: fresh pages cost more than what is written into them
// (zeroed by the kernel one fault at a time, 602 KB took 150 us). Growing moves pages, not bytes,
// and leaves nothing behind, as blocks of the allocator's heap would.
//
// Threads: one at a time; blocks of several threads share what is kept.
class RecycledBlock {
 public:
  RecycledBlock() = default;
  RecycledBlock(RecycledBlock&& from) noexcept
      : data_(std::exchange(from.data_, nullptr)),
        capacity_(std::exchange(from.capacity_, 0)),
        kept_(std::exchange(from.kept_, false)) {}
  RecycledBlock& operator=(RecycledBlock&& from) noexcept {
    std::swap(data_, from.data_);
    std::swap(capacity_, from.capacity_);
    std::swap(kept_, from.kept_);
    return *this;
  }
  ~RecycledBlock() { Clear(); }

  // Room for at least so many bytes from now on, the old ones kept, new ones with any value. False,
  // and nothing changed, when the machine has no memory left.
  [[nodiscard]] bool Grow(size_t capacity);
  void Clear();

  std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }

  // What is kept for later, or was and is in use again, of the whole process.
  static size_t BytesKept();

 private:
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;  // A multiple of the grain.
  bool kept_ = false;    // Came from what was kept.
};

}  // namespace tensord::base
