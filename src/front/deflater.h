// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_budget.h"

struct z_stream_s;

namespace tensord::front {

// Compresses an answer as gzip or zlib slice by slice, so that a large one does not hold up its
// loop.
//
// Threads: one at a time. Lifetime: `input` and `budget` outlive it.
class Deflater {
 public:
  enum class Format : uint8_t { kGzip, kZlib };
  enum class Result : uint8_t {
    kMore,    // Call Step again, in another iteration.
    kDone,    // TakeOutput has all of it.
    kNoGain,  // It would be no smaller, or there is no memory for it: send the input.
  };

  Deflater(Format format, std::string_view input, base::ByteBudget* budget);
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater();

  // Some milliseconds of work at most. REQUIRES: every earlier call gave kMore.
  Result Step();
  // REQUIRES: Step gave kDone.
  std::string TakeOutput() { return std::move(output_); }

 private:
  std::string_view input_;  // What zlib has not been given yet.
  const size_t size_max_;   // The input's size: no larger output is of use.
  std::string output_;
  base::BytesHeld held_;  // For the output.
  std::unique_ptr<z_stream_s> stream_;
  bool ready_ = false;  // zlib could make its state.
};

}  // namespace tensord::front
