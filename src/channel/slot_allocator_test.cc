// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/slot_allocator.h"

#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace tensord::channel {
namespace {

TEST(SlotAllocator, GivesAlignedRegionsThatDoNotOverlap) {
  SlotAllocator allocator(1024);
  const std::optional<Slot> first = allocator.Take(1);
  const std::optional<Slot> second = allocator.Take(65);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->offset(), 0u);
  EXPECT_EQ(first->bytes(), 64u);
  EXPECT_EQ(second->offset(), 64u);
  EXPECT_EQ(second->bytes(), 128u);
  EXPECT_EQ(allocator.free_bytes(), 1024u - 192u);
  EXPECT_EQ(allocator.slots_out(), 2u);
}

TEST(SlotAllocator, GivesAPlaceEvenToAnEmptyTensor) {
  SlotAllocator allocator(128);
  const std::optional<Slot> a = allocator.Take(0);
  const std::optional<Slot> b = allocator.Take(0);
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_NE(a->offset(), b->offset());
  EXPECT_FALSE(allocator.Take(0).has_value());
}

TEST(SlotAllocator, RefusesWhatNoGapHolds) {
  SlotAllocator allocator(256);
  EXPECT_FALSE(allocator.Take(257).has_value());
  EXPECT_FALSE(allocator.Take(std::numeric_limits<uint64_t>::max()).has_value());
  EXPECT_FALSE(SlotAllocator(63).Take(1).has_value());
  EXPECT_EQ(allocator.slots_out(), 0u);
}

TEST(SlotAllocator, JoinsReturnedNeighboursInAnyOrder) {
  SlotAllocator allocator(192);
  for (const int last : {0, 1, 2}) {
    std::optional<Slot> slots[3];
    for (auto& slot : slots) slot = allocator.Take(64);
    for (int i = 0; i < 3; ++i) {
      if (i != last) slots[i].reset();
    }
    slots[last].reset();
    EXPECT_EQ(allocator.largest_bytes(), 192u) << "last " << last;
  }
}

TEST(SlotAllocator, NeverReusesAQuarantinedRegion) {
  SlotAllocator allocator(128);
  std::optional<Slot> slot = allocator.Take(64);
  ASSERT_TRUE(slot.has_value());
  const uint64_t offset = slot->offset();
  slot->Quarantine();
  EXPECT_FALSE(slot->valid());
  slot.reset();
  EXPECT_EQ(allocator.quarantined_slots(), 1u);
  EXPECT_EQ(allocator.quarantined_bytes(), 64u);
  EXPECT_EQ(allocator.slots_out(), 0u);
  const std::optional<Slot> next = allocator.Take(64);
  ASSERT_TRUE(next.has_value());
  EXPECT_NE(next->offset(), offset);
  EXPECT_FALSE(allocator.Take(64).has_value());
}

TEST(SlotAllocator, MovedSlotsReturnTheirRegionOnce) {
  SlotAllocator allocator(128);
  {
    std::optional<Slot> taken = allocator.Take(64);
    ASSERT_TRUE(taken.has_value());
    Slot a = *std::move(taken);
    Slot b = std::move(a);
    Slot c;
    c = std::move(b);
    EXPECT_TRUE(c.valid());
  }
  EXPECT_EQ(allocator.slots_out(), 0u);
  EXPECT_EQ(allocator.largest_bytes(), 128u);
}

TEST(SlotAllocator, RandomUseNeverOverlapsAndAlwaysComesHome) {
  constexpr uint64_t kBytes = 64 * 256;
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    SlotAllocator allocator(kBytes);
    std::vector<Slot> out;
    for (int step = 0; step < 500; ++step) {
      if (!out.empty() && random() % 2 == 0) {
        std::swap(out[random() % out.size()], out.back());
        out.pop_back();
        continue;
      }
      if (std::optional<Slot> slot = allocator.Take(random() % 3000)) {
        for (const Slot& other : out) {
          ASSERT_TRUE(slot->offset() + slot->bytes() <= other.offset() ||
                      other.offset() + other.bytes() <= slot->offset())
              << "seed " << seed;
        }
        ASSERT_LE(slot->offset() + slot->bytes(), kBytes);
        out.push_back(*std::move(slot));
      }
    }
    out.clear();
    ASSERT_EQ(allocator.largest_bytes(), kBytes) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tensord::channel
