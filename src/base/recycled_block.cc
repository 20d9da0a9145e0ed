// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/recycled_block.h"

#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/mutex.h"

namespace tensord::base {
namespace {

// Sizes differ a little from request to request: one grain more fits most of them.
constexpr size_t kGrainBytes = size_t{64} << 10;

size_t WholeGrains(size_t bytes) { return (bytes + kGrainBytes - 1) / kGrainBytes * kGrainBytes; }

struct FreeBlock {
  std::byte* data;
  size_t capacity;
};

// The freed blocks of the process. Blocks that were taken from here count until they grow or end:
// all their pages are there, though whoever took them may have paid for less.
class Store {
 public:
  // The smallest that fits; null when there is none.
  FreeBlock Take(size_t capacity) {
    MutexLock lock(&mu_);
    auto best = blocks_.end();
    for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
      if (at->capacity < capacity) continue;
      if (best == blocks_.end() || at->capacity < best->capacity) best = at;
    }
    if (best == blocks_.end()) return {nullptr, 0};
    const FreeBlock taken = *best;
    *best = blocks_.back();
    blocks_.pop_back();
    return taken;
  }

  // A block that came from here comes back.
  void PutBack(FreeBlock block) {
    MutexLock lock(&mu_);
    blocks_.push_back(block);
  }
  // False when a new one is not wanted.
  bool Put(FreeBlock block) {
    if (block.capacity > limits::kRecycledBlockBytesMax) return false;
    MutexLock lock(&mu_);
    if (bytes_ + block.capacity > limits::kRecycledBytesKept) return false;
    blocks_.push_back(block);
    bytes_ += block.capacity;
    return true;
  }
  // A block that came from here will not come back as what it was.
  void Forget(size_t capacity) {
    MutexLock lock(&mu_);
    bytes_ -= capacity;
  }

  size_t bytes() {
    MutexLock lock(&mu_);
    return bytes_;
  }

 private:
  Mutex mu_;
  std::vector<FreeBlock> blocks_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// Lives as long as the process: blocks are freed until its last moment.
Store& TheStore() {
  static Store* const store = std::make_unique<Store>().release();
  return *store;
}

}  // namespace

bool RecycledBlock::Grow(size_t capacity) {
  if (capacity <= capacity_) return true;
  if (capacity > SIZE_MAX - kGrainBytes) return false;
  const size_t size = WholeGrains(capacity);
  if (data_ == nullptr) {
    const FreeBlock kept = TheStore().Take(size);
    if (kept.data != nullptr) {
      data_ = kept.data;
      capacity_ = kept.capacity;
      kept_ = true;
      return true;
    }
  }
  void* grown = data_ == nullptr ? mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                 : mremap(data_, capacity_, size, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) return false;
  if (std::exchange(kept_, false)) TheStore().Forget(capacity_);
  data_ = static_cast<std::byte*>(grown);
  capacity_ = size;
  return true;
}

void RecycledBlock::Clear() {
  if (data_ == nullptr) return;
  if (std::exchange(kept_, false)) {
    TheStore().PutBack({data_, capacity_});
  } else if (!TheStore().Put({data_, capacity_})) {
    munmap(data_, capacity_);
  }
  data_ = nullptr;
  capacity_ = 0;
}

size_t RecycledBlock::BytesKept() { return TheStore().bytes(); }

}  // namespace tensord::base
