// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/worker_pool.h"

#include <algorithm>

#include "base/check.h"

namespace tensord::sched {
namespace {

// Runs that would start at once.
int Idle(const WorkerSlot& slot) {
  return std::min(slot.worker->Free(), slot.worker->Executors() - slot.running);
}

}  // namespace

void WorkerPool::Add(fleet::Worker* worker) {
  for (const auto& slot : slots_) TENSORD_CHECK(slot->removed || slot->worker != worker);
  slots_.push_back(std::make_unique<WorkerSlot>(WorkerSlot{.worker = worker}));
}

void WorkerPool::Remove(fleet::Worker* worker) {
  for (const auto& slot : slots_) {
    if (slot->removed || slot->worker != worker) continue;
    slot->removed = true;
    MarkLost(*slot);
    break;
  }
  DropUnused();
}

void WorkerPool::RunStarted(WorkerSlot& slot) { ++slot.running; }

void WorkerPool::RunEnded(WorkerSlot& slot) {
  TENSORD_CHECK(slot.running > 0);
  --slot.running;
  if (slot.removed) DropUnused();
}

void WorkerPool::MarkLost(WorkerSlot& slot) {
  slot.lost = true;
  if (quiet_ == &slot) quiet_ = nullptr;
}

void WorkerPool::DropUnused() {
  std::erase_if(slots_, [](const auto& slot) { return slot->removed && slot->running == 0; });
}

WorkerSlot* WorkerPool::PickIdle() const {
  WorkerSlot* best = nullptr;
  int best_idle = 0;
  for (const auto& slot : slots_) {
    if (slot->lost || slot.get() == quiet_) continue;
    const int idle = Idle(*slot);
    if (idle <= best_idle) continue;
    best = slot.get();
    best_idle = idle;
  }
  return best;
}

WorkerSlot* WorkerPool::PickStaging() const {
  WorkerSlot* best = nullptr;
  int best_free = 0;
  for (const auto& slot : slots_) {
    if (slot->lost || slot.get() == quiet_) continue;
    const int free = slot->worker->Free();
    if (free <= best_free) continue;
    best = slot.get();
    best_free = free;
  }
  return best;
}

WorkerSlot* WorkerPool::PickQuiet() {
  if (quiet_ == nullptr) {
    for (const auto& slot : slots_) {
      if (slot->lost) continue;
      if (quiet_ == nullptr || slot->running < quiet_->running) quiet_ = slot.get();
    }
  }
  if (quiet_ == nullptr || quiet_->running > 0 || quiet_->worker->Free() <= 0) return nullptr;
  return quiet_;
}

int64_t WorkerPool::live() const {
  return std::count_if(slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->lost; });
}

int64_t WorkerPool::idle() const {
  int64_t idle = 0;
  for (const auto& slot : slots_) {
    if (!slot->lost && slot.get() != quiet_) idle += std::max(0, Idle(*slot));
  }
  return idle;
}

int64_t WorkerPool::executors() const {
  int64_t executors = 0;
  for (const auto& slot : slots_) {
    if (slot->lost) continue;
    const int at_once = slot->running + std::max(0, slot->worker->Free());
    executors += std::min(at_once, slot->worker->Executors());
  }
  return executors;
}

}  // namespace tensord::sched
