// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/slot_allocator.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace tensord::channel {
namespace {

constexpr uint64_t kAlignment = 64;  // A cache line, and what the runtime asks of tensor memory.

}  // namespace

Slot::~Slot() {
  if (allocator_ != nullptr) allocator_->Return(offset_, bytes_);
}

void Slot::Quarantine() {
  if (allocator_ != nullptr) std::exchange(allocator_, nullptr)->Quarantine(bytes_);
}

SlotAllocator::SlotAllocator(uint64_t segment_bytes)
    : free_bytes_(segment_bytes / kAlignment * kAlignment) {
  if (free_bytes_ > 0) gaps_.push_back({.offset = 0, .bytes = free_bytes_});
}

std::optional<Slot> SlotAllocator::Take(uint64_t bytes) {
  if (bytes > std::numeric_limits<uint64_t>::max() - kAlignment) return std::nullopt;
  const uint64_t rounded = std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  const auto gap = std::find_if(gaps_.begin(), gaps_.end(),
                                [rounded](const Gap& g) { return g.bytes >= rounded; });
  if (gap == gaps_.end()) return std::nullopt;
  const uint64_t offset = gap->offset;
  gap->offset += rounded;
  gap->bytes -= rounded;
  if (gap->bytes == 0) gaps_.erase(gap);
  free_bytes_ -= rounded;
  ++slots_out_;
  return Slot(this, offset, rounded);
}

uint64_t SlotAllocator::largest_bytes() const {
  uint64_t largest = 0;
  for (const Gap& gap : gaps_) largest = std::max(largest, gap.bytes);
  return largest;
}

void SlotAllocator::Return(uint64_t offset, uint64_t bytes) {
  TENSORD_CHECK(slots_out_ > 0);
  --slots_out_;
  free_bytes_ += bytes;
  auto next = std::find_if(gaps_.begin(), gaps_.end(),
                           [offset](const Gap& gap) { return gap.offset > offset; });
  const bool joins_next = next != gaps_.end() && offset + bytes == next->offset;
  const bool joins_last =
      next != gaps_.begin() && std::prev(next)->offset + std::prev(next)->bytes == offset;
  if (joins_last && joins_next) {
    std::prev(next)->bytes += bytes + next->bytes;
    gaps_.erase(next);
  } else if (joins_last) {
    std::prev(next)->bytes += bytes;
  } else if (joins_next) {
    next->offset = offset;
    next->bytes += bytes;
  } else {
    gaps_.insert(next, {.offset = offset, .bytes = bytes});
  }
}

void SlotAllocator::Quarantine(uint64_t bytes) {
  TENSORD_CHECK(slots_out_ > 0);
  --slots_out_;
  ++quarantined_slots_;
  quarantined_bytes_ += bytes;
}

}  // namespace tensord::channel
