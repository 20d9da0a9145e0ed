// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

// The numbers of records on the wire, for record_encode.cc and record_decode.cc alone.
namespace tensord::channel {

static_assert(std::endian::native == std::endian::little, "records travel as they lie in memory");

inline constexpr uint32_t kRecordMagic = 0x48434454;  // "TDCH"
inline constexpr uint64_t kOffsetAlignment = 64;      // Of every tensor and region in a segment.

enum class RecordKind : uint16_t {
  kLoad = 1,
  kRun = 2,
  kCollect = 3,
  kStop = 4,
  kSegments = 5,
  kSeal = 6,
  kHello = 16,
  kLoaded = 17,
  kLoadFailed = 18,
  kCompletion = 19,
  kHeartbeat = 20,
  kDying = 21,
  kSegmentsTaken = 22,
  kSealed = 23,
};

// The fixed part of each item that is variable in length.
inline constexpr size_t kDescriptorBytes = 24;
inline constexpr size_t kRunBytes = 40;
inline constexpr size_t kCompletionBytes = 40;

}  // namespace tensord::channel
