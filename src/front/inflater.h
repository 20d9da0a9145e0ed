// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "front/body_buffer.h"

struct z_stream_s;

namespace tensord::front {

// Undoes gzip or zlib compression slice by slice, so that a bomb neither holds up its loop nor
// grows past its limit, whatever its ratio.
//
// Threads: one at a time. Lifetime: `input` and `out` outlive it.
class Inflater {
 public:
  enum class Format : uint8_t { kGzip, kZlib };
  enum class Result : uint8_t {
    kMore,      // Call Step again, in another iteration.
    kDone,      // `out` holds all of it.
    kCorrupt,   // Not of that format, cut short, wrong checksum, or followed by something else.
    kTooLarge,  // Would pass `bytes_max`.
    kNoMemory,  // The budget is used up.
  };

  // Appends to `out`.
  Inflater(Format format, std::span<const std::byte> input, size_t bytes_max, BodyBuffer* out);
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  // Some milliseconds of work at most. REQUIRES: every earlier call gave kMore.
  Result Step();

 private:
  // At the end of one gzip member: another may follow.
  Result EndOfStream();

  const Format format_;
  std::span<const std::byte> input_;  // What zlib has not been given yet.
  const size_t size_max_;             // Of `out_`, with what it held before.
  BodyBuffer* const out_;
  std::unique_ptr<z_stream_s> stream_;
  int members_ = 1;
  bool ready_ = false;  // zlib could make its state.
};

// What a content-encoding header says of a body; none when it names nothing that we undo. As the
// original: any value that contains "gzip". Beside that, as Triton, "deflate", which is zlib's.
std::optional<Inflater::Format> BodyFormat(std::string_view content_encoding);

}  // namespace tensord::front
