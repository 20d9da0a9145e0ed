// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/client.h"
#include "bench/histogram.h"

namespace tensord::bench {

struct ErrorCount {
  uint64_t count = 0;
  std::string first_words;
};

// What became of one kind of request.
struct KindTally {
  uint64_t answered = 0;
  uint64_t failed = 0;
  Histogram latency;  // Only of the first kKindsInDetail.
};

// What became of the requests that are measured. Threads: one at a time; each thread of the load
// has its own, and they are merged.
struct Tally {
  static constexpr size_t kKindsInDetail = 64;  // A histogram takes some 100 KB.

  uint64_t answered = 0;  // Well, and in time where there is a deadline.
  uint64_t failed = 0;
  uint64_t refused = 0;              // Of the failed: the server had no room. See IsRefusal.
  Histogram latency;                 // Of the answered, from when they were due.
  Histogram service;                 // Of the answered, from when they were sent.
  Histogram refusal;                 // Of the refused, from when they were sent.
  Histogram lateness;                // Open loop: how late this program sent.
  std::map<int, ErrorCount> errors;  // By Answer::code.
  std::vector<KindTally> kinds;

  void Merge(const Tally& other);
  void CountFailure(uint32_t kind, int code, std::string_view words);
};

// UNAVAILABLE or RESOURCE_EXHAUSTED, HTTP 429 or 503.
bool IsRefusal(int code);
// A server's words without line ends: JSON errors are printed over several lines.
std::string OneLine(std::string_view words);
// "UNAVAILABLE", "HTTP 503", "connection lost".
std::string CodeName(int code, bool rest);

}  // namespace tensord::bench
