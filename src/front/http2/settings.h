// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <limits>

#include "absl/time/time.h"
#include "base/limits.h"
#include "front/grpc_encoding.h"

namespace tensord::front {

// What an operator may say about HTTP/2 connections and the gRPC calls on them.
struct Http2Settings {
  uint64_t message_bytes_max = limits::kBodyBytesMax;  // Of a call.
  uint64_t answer_bytes_max = std::numeric_limits<uint64_t>::max();
  uint32_t streams_max = limits::kStreamsPerConnectionMax;  // Open at once.
  absl::Duration idle_max = limits::kIdleConnectionMax;     // Without a call; then it drains.
  absl::Duration age_max = absl::InfiniteDuration();        // Likewise, give or take a tenth.
  absl::Duration age_grace = absl::InfiniteDuration();      // Then what still runs is cut.
  // A quiet client is pinged, and closed when it does not answer.
  absl::Duration keepalive_every = absl::InfiniteDuration();
  absl::Duration keepalive_wait = limits::kKeepaliveWait;
  bool keepalive_without_calls = false;
  GrpcEncoding answer_encoding = GrpcEncoding::kIdentity;  // For those who do not ask for one.
};

}  // namespace tensord::front
