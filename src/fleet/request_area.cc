// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/request_area.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tensord::fleet {

RequestArea::Lease::Lease(std::shared_ptr<RequestArea> area, channel::Slot slot)
    : area_(std::move(area)),
      offset_(slot.offset()),
      bytes_(slot.bytes()),
      slot_(std::move(slot)) {}

RequestArea::Lease::~Lease() { area_->DropEnded(); }

RequestArea::RequestArea(channel::RequestSegment segment)
    : segment_(std::move(segment)), slots_(segment_.size()) {}

std::shared_ptr<RequestArea::Lease> RequestArea::TakeLease(uint64_t bytes) {
  std::optional<channel::Slot> slot = slots_.Take(bytes);
  if (!slot.has_value()) return nullptr;
  auto lease = std::make_shared<Lease>(shared_from_this(), *std::move(slot));
  leases_.push_back(lease);
  return lease;
}

std::shared_ptr<RequestArea::Lease> RequestArea::FindLease(std::span<const std::byte> bytes) const {
  if (bytes.empty()) return nullptr;
  for (const std::weak_ptr<Lease>& one : leases_) {
    std::shared_ptr<Lease> lease = one.lock();
    if (lease == nullptr) continue;
    const std::span<const std::byte> memory = lease->memory();
    // Pointers into different memory have an order by std::less only.
    const std::less<> less;
    const bool begins = !less(bytes.data(), memory.data());
    if (begins && !less(memory.data() + memory.size(), bytes.data() + bytes.size())) return lease;
  }
  return nullptr;
}

uint64_t RequestArea::OffsetOf(std::span<const std::byte> bytes) const {
  return static_cast<uint64_t>(bytes.data() - segment_.Bytes(0, 0).data());
}

void RequestArea::DropEnded() {
  std::erase_if(leases_, [](const std::weak_ptr<Lease>& one) { return one.expired(); });
}

size_t RequestArea::receiving() const {
  return static_cast<size_t>(std::ranges::count_if(leases_, [](const std::weak_ptr<Lease>& one) {
    const std::shared_ptr<Lease> lease = one.lock();
    return lease != nullptr && !lease->ran();
  }));
}

}  // namespace tensord::fleet
