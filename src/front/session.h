// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <span>

#include "absl/time/time.h"
#include "front/out_queue.h"

namespace tensord::front {

// One protocol spoken over one connection: bytes in, bytes out, calls to the service between.
// Knows no socket. The connection that owns it calls it; it asks through front/link.h.
//
// Threads: the connection's loop.
class Session {
 public:
  virtual ~Session() = default;
  // Where the next bytes should be read to, to spare a copy; empty: anywhere.
  virtual std::span<std::byte> ReadInto() { return {}; }
  // Bytes from the client, all of which the session takes. They may lie in ReadInto().
  virtual void OnBytes(std::span<const std::byte> bytes) = 0;
  // The client sends no more.
  virtual void OnEndOfInput() = 0;
  // The end of an iteration in which the session asked for a turn, with all earlier output written:
  // appends what should go out now, about `room` bytes at most. Asks again if there is more.
  virtual void Turn(OutQueue* out, size_t room) = 0;
  // The connection is lost or closing: every call without an answer is cancelled.
  virtual void OnGone() = 0;
  // No new requests after those under way; then close.
  virtual void StartDrain() = 0;
  // About once a second, for what takes too long.
  virtual void OnTick(absl::Time now) = 0;
  // Requests that were begun and are not answered.
  virtual size_t open_calls() const = 0;
  // Nothing is under way: closing now loses nothing.
  virtual bool idle() const = 0;
};

}  // namespace tensord::front
