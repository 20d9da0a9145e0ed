// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensord::front {

// Takes a chunked body apart, piece by piece as it arrives, keeping nothing of it. Strict: sizes
// are 1 to 16 hexadecimal digits, lines end in CRLF, and a body of tiny chunks is an attack.
//
// Threads: one.
class ChunkedDecoder {
 public:
  enum class Kind : uint8_t {
    kNeedMore,  // All given bytes are taken; the body goes on.
    kData,      // `data` belongs to the body; call again with what is left.
    kEnd,       // The body and its trailers are complete.
    kBad,       // Not a chunked body, or an abusive one.
  };
  struct Step {
    Kind kind = Kind::kNeedMore;
    size_t taken = 0;            // Bytes of the input that are done with.
    std::string_view data = {};  // In the input.
  };

  Step Next(std::string_view input);

 private:
  enum class State : uint8_t {
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailer,
    kTrailerLf,
    kEndLf,
    kEnd
  };

  // Takes one byte outside of chunk data; false when it has no place there.
  bool Take(char c);
  bool TakeSize(char c);
  bool EndOfSizeLine();
  bool TakeTrailer(char c);

  State state_ = State::kSize;
  uint64_t size_ = 0;  // Of the chunk; then what is left of it.
  int digits_ = 0;
  size_t line_bytes_ = 0;
  size_t trailer_bytes_ = 0;
  uint64_t chunks_ = 0;
  uint64_t data_bytes_ = 0;
};

}  // namespace tensord::front
