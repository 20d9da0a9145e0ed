// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/limits.h"

namespace tensord::wire {

// The shape of a nest of lists of numbers.
struct NumberNest {
  int rank = 0;
  std::array<int64_t, limits::kRankMax> dims{};
  uint64_t elements = 0;
};

// Reads a nest of lists of numbers, every list of a level as long as the others and none empty,
// from the start of [at, end) into `room`, as Ts: what nearly all bytes of a large body are. One
// pass; the text need not have been checked before, and is accepted only by the grammar of
// JsonCursor. Returns the end of the nest. Null for everything else, for whatever reason: it is
// then read the careful way, which knows more forms and finds the words for what is wrong. T: a 32
// or 64 bit float, or an integer.
template <typename T>
const char* ReadNumberNest(const char* at, const char* end, std::span<std::byte> room,
                           NumberNest* nest);

}  // namespace tensord::wire
