// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

// Limits of what clients send that one place of the front asks for; the others are in
// base/limits.h.
namespace tensord::limits {

// No body is that large: a claim of more is a try at overflowing somebody's counter.
inline constexpr uint64_t kChunkBytesMax = uint64_t{1} << 40;
inline constexpr size_t kTokenBytesMax = 4096;  // Of what is hashed; usual ones have 20 to 1,000.

// Lines of the audit: a client with a wrong password shows in full, a flood (some 2 KB a line, as
// many as a connection carries calls) fills no disk: 4 GB a day at the very most.
inline constexpr double kAuditLinesBurst = 1'000;
inline constexpr double kAuditLinesPerSecond = 20;
inline constexpr absl::Duration kAuditSummaryEvery = absl::Seconds(1);

}  // namespace tensord::limits
