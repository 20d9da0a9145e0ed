// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tensord::channel {

class SlotAllocator;

// A region of a segment, leased. Destroying the lease returns the region, unless it is quarantined.
// Threads: as its allocator. Lifetime: the allocator outlives every slot.
class Slot {
 public:
  Slot() = default;
  Slot(SlotAllocator* allocator, uint64_t offset, uint64_t bytes)
      : allocator_(allocator), offset_(offset), bytes_(bytes) {}
  Slot(Slot&& from) noexcept
      : allocator_(std::exchange(from.allocator_, nullptr)),
        offset_(from.offset_),
        bytes_(from.bytes_) {}
  Slot& operator=(Slot&& from) noexcept {
    std::swap(allocator_, from.allocator_);
    std::swap(offset_, from.offset_);
    std::swap(bytes_, from.bytes_);
    return *this;
  }
  ~Slot();

  bool valid() const { return allocator_ != nullptr; }
  uint64_t offset() const { return offset_; }
  uint64_t bytes() const { return bytes_; }
  // The region is never given out again: its memory is still in somebody's hands, and only the end
  // of the worker (and with it of segment and allocator) takes it back. The slot becomes invalid.
  void Quarantine();

 private:
  SlotAllocator* allocator_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
};

// Gives out regions of one segment, first fit, each aligned to 64 bytes. All it knows lies in
// private memory; it never touches the segment, so nothing that a worker writes can confuse it.
// Threads: one.
class SlotAllocator {
 public:
  explicit SlotAllocator(uint64_t segment_bytes);
  SlotAllocator(const SlotAllocator&) = delete;
  SlotAllocator& operator=(const SlotAllocator&) = delete;

  // At least `bytes` (and at least 64), rounded up to 64; none when no gap is large enough.
  std::optional<Slot> Take(uint64_t bytes);

  // Of the largest gap.
  uint64_t largest_bytes() const;
  uint64_t free_bytes() const { return free_bytes_; }
  uint64_t slots_out() const { return slots_out_; }
  uint64_t quarantined_slots() const { return quarantined_slots_; }
  uint64_t quarantined_bytes() const { return quarantined_bytes_; }

  // For Slot.
  void Return(uint64_t offset, uint64_t bytes);
  void Quarantine(uint64_t bytes);

 private:
  struct Gap {
    uint64_t offset;
    uint64_t bytes;
  };

  std::vector<Gap> gaps_;  // By offset; never two that touch. A handful: slots are few.
  uint64_t free_bytes_ = 0;
  uint64_t slots_out_ = 0;
  uint64_t quarantined_slots_ = 0;
  uint64_t quarantined_bytes_ = 0;
};

}  // namespace tensord::channel
