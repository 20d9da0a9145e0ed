// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "channel/segment.h"
#include "channel/slot_allocator.h"

namespace tensord::fleet {

// A request segment and who has what of it: slots of runs, and leases of requests that are received
// right where the worker will read them.
//
// Threads: one. Lifetime: shared by the worker's handle and the leases; slots go before it.
class RequestArea : public std::enable_shared_from_this<RequestArea> {
 public:
  // A slot that its request is received into.
  class Lease {
   public:
    Lease(std::shared_ptr<RequestArea> area, channel::Slot slot);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    std::span<std::byte> memory() const { return area_->Bytes(offset_, bytes_); }
    // A run of it has begun.
    void MarkRun() { ran_ = true; }
    bool ran() const { return ran_; }
    // Never given out again, even when the lease ends.
    void Quarantine() { slot_.Quarantine(); }

   private:
    const std::shared_ptr<RequestArea> area_;
    const uint64_t offset_;
    const uint64_t bytes_;
    channel::Slot slot_;
    bool ran_ = false;
  };

  explicit RequestArea(channel::RequestSegment segment);

  uint64_t size() const { return segment_.size(); }
  int fd() const { return segment_.fd(); }
  uint64_t slots_out() const { return slots_.slots_out(); }
  std::optional<channel::Slot> Take(uint64_t bytes) { return slots_.Take(bytes); }
  // REQUIRES: the range is a slot's.
  std::span<std::byte> Bytes(uint64_t offset, uint64_t bytes) const {
    return segment_.Bytes(offset, bytes);
  }

  // Null when no gap is large enough.
  std::shared_ptr<Lease> TakeLease(uint64_t bytes);
  // The lease in which these bytes lie; null when they lie elsewhere.
  std::shared_ptr<Lease> FindLease(std::span<const std::byte> bytes) const;
  // REQUIRES: bytes lie in a lease.
  uint64_t OffsetOf(std::span<const std::byte> bytes) const;
  bool leased() const { return !leases_.empty(); }
  // Leases of requests that are still being received, or wait.
  size_t receiving() const;
  // For Lease.
  void DropEnded();

 private:
  channel::RequestSegment segment_;
  channel::SlotAllocator slots_;
  std::vector<std::weak_ptr<Lease>> leases_;  // A handful: no more than executors begin at a time.
};

}  // namespace tensord::fleet
