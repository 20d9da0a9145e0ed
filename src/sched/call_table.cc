// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/call_table.h"

#include <utility>

#include "base/check.h"

namespace tensord::sched {
namespace {

// An id is the entry's place + 1 in the low half, and how often the place was used in the high one.
constexpr int kPlaceBits = 32;
constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;

uint64_t PlaceOf(CallId id) { return (id & kPlaceMask) - 1; }

}  // namespace

CallEntry& CallTable::Add(Call call) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(entries_.size()));
    CallEntry& fresh = entries_.emplace_back();
    fresh.id = entries_.size();
  }
  CallEntry& entry = entries_[free_.back()];
  free_.pop_back();
  entry.id += uint64_t{1} << kPlaceBits;
  entry.call = std::move(call);
  entry.lane = nullptr;
  entry.batch = nullptr;
  entry.workers_lost = 0;
  entry.alone = false;
  entry.noted = false;
  entry.is_piece = false;
  entry.due = absl::InfinitePast();
  if (entry.call.deadline != absl::InfiniteFuture()) {
    heap_.emplace_back();
    SiftUp(heap_.size() - 1, {entry.call.deadline, &entry});
  }
  return entry;
}

CallEntry* CallTable::Find(CallId id) {
  const uint64_t place = PlaceOf(id);
  if (place >= entries_.size()) return nullptr;
  CallEntry& entry = entries_[place];
  return entry.id == id && entry.state != CallState::kFree ? &entry : nullptr;
}

void CallTable::Remove(CallEntry& entry) {
  TENSORD_CHECK(entry.state != CallState::kFree);
  ForgetDeadline(entry);
  entry.state = CallState::kFree;
  entry.call.inputs.clear();
  entry.call.keep.reset();
  entry.model_bytes.Clear();
  entry.call.done = nullptr;
  entry.pieces.reset();
  free_.push_back(static_cast<uint32_t>(PlaceOf(entry.id)));
}

void CallTable::ForgetDeadline(CallEntry& entry) {
  const size_t at = std::exchange(entry.heap_index, SIZE_MAX);
  if (at == SIZE_MAX) return;
  const HeapItem last = heap_.back();
  heap_.pop_back();
  if (last.entry == &entry) return;
  if (at > 0 && last.deadline < heap_[(at - 1) / 2].deadline) {
    SiftUp(at, last);
  } else {
    SiftDown(at, last);
  }
}

absl::Time CallTable::NextDeadline() const {
  return heap_.empty() ? absl::InfiniteFuture() : heap_.front().deadline;
}

CallEntry& CallTable::NextToExpire() {
  TENSORD_CHECK(!heap_.empty());
  return *heap_.front().entry;
}

std::vector<CallId> CallTable::Ids() const {
  std::vector<CallId> ids;
  for (const CallEntry& entry : entries_) {
    if (entry.state != CallState::kFree) ids.push_back(entry.id);
  }
  return ids;
}

void CallTable::Place(size_t at, HeapItem item) {
  heap_[at] = item;
  item.entry->heap_index = at;
}

void CallTable::SiftUp(size_t at, HeapItem item) {
  while (at > 0) {
    const size_t parent = (at - 1) / 2;
    if (heap_[parent].deadline <= item.deadline) break;
    Place(at, heap_[parent]);
    at = parent;
  }
  Place(at, item);
}

void CallTable::SiftDown(size_t at, HeapItem item) {
  for (size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1].deadline < heap_[child].deadline) ++child;
    if (item.deadline <= heap_[child].deadline) break;
    Place(at, heap_[child]);
    at = child;
  }
  Place(at, item);
}

}  // namespace tensord::sched
