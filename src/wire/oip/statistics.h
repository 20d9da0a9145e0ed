// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <span>
#include <string>

// Triton's statistics extension, as protobuf and as JSON.
namespace tensord::wire {

struct OipDuration {
  uint64_t count = 0;
  uint64_t nanoseconds = 0;
};

// One version, since its metrics began.
struct OipStatistics {
  std::string name = {};
  int64_t version = 0;
  uint64_t rows = 0;  // That ran.
  uint64_t runs = 0;
  OipDuration success = {};
  OipDuration fail = {};
  OipDuration queue = {};
  OipDuration compute_input = {};
  OipDuration compute_infer = {};
  OipDuration compute_output = {};
};

std::string EncodeOipStatistics(std::span<const OipStatistics> versions);
std::string PrintOipStatistics(std::span<const OipStatistics> versions);

}  // namespace tensord::wire
