// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/link.h"
#include "front/session.h"

namespace tensord::front {

// How the bytes of a conversation come, and what happens meanwhile.
struct Pace {
  size_t piece = 0;     // Bytes at a time; 0: all at once.
  bool ends = false;    // The client ends its side.
  bool drains = false;  // The server drains after half of the pieces.
  bool waits = false;   // Time passes between the pieces.

  // From the first two bytes of a fuzzer's input.
  static Pace FromBytes(unsigned char first, unsigned char second);
};

// What became of it.
struct Heard {
  std::vector<std::string> requests;  // Method, target and body of each that reached the service.
  size_t bytes_out = 0;
};

// Feeds the bytes to a session with an echo service behind it, and to no socket. Dies when
// something is left over at the end: bytes of the budget, calls, timers.
Heard Converse(const std::function<std::unique_ptr<Session>(Link*)>& make, std::string_view bytes,
               const Pace& pace);

}  // namespace tensord::front
