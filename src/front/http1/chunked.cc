// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/http1/chunked.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/limits.h"
#include "front/limits.h"

namespace tensord::front {
namespace {

constexpr int kSizeDigitsMax = 16;

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace

ChunkedDecoder::Step ChunkedDecoder::Next(std::string_view input) {
  size_t at = 0;
  while (state_ != State::kEnd) {
    if (at == input.size()) return {.kind = Kind::kNeedMore, .taken = at};
    if (state_ == State::kData) {
      const auto n = static_cast<size_t>(std::min<uint64_t>(size_, input.size() - at));
      size_ -= n;
      data_bytes_ += n;
      if (size_ == 0) state_ = State::kDataCr;
      return {.kind = Kind::kData, .taken = at + n, .data = input.substr(at, n)};
    }
    if (!Take(input[at])) return {.kind = Kind::kBad, .taken = at};
    ++at;
  }
  return {.kind = Kind::kEnd, .taken = at};
}

bool ChunkedDecoder::Take(char c) {
  switch (state_) {
    case State::kSize:
      return TakeSize(c);
    case State::kExtension:
      if (++line_bytes_ > limits::kChunkLineBytesMax) return false;
      if (c == '\r') state_ = State::kSizeLf;
      return c == '\r' || !IsControl(c);
    case State::kSizeLf:
      return c == '\n' && EndOfSizeLine();
    case State::kDataCr:
      state_ = State::kDataLf;
      return c == '\r';
    case State::kDataLf:
      state_ = State::kSize;
      size_ = 0;
      digits_ = 0;
      line_bytes_ = 0;
      return c == '\n';
    case State::kTrailerStart:
    case State::kTrailer:
    case State::kTrailerLf:
    case State::kEndLf:
      return TakeTrailer(c);
    case State::kData:
    case State::kEnd:
      break;
  }
  return false;
}

bool ChunkedDecoder::TakeSize(char c) {
  const int digit = base::HexDigit(c);
  if (digit >= 0) {
    size_ = size_ << 4 | static_cast<uint64_t>(digit);
    return ++digits_ <= kSizeDigitsMax;
  }
  if (digits_ == 0) return false;
  if (c == '\r') {
    state_ = State::kSizeLf;
    return true;
  }
  state_ = State::kExtension;
  return c == ';';
}

bool ChunkedDecoder::EndOfSizeLine() {
  state_ = size_ == 0 ? State::kTrailerStart : State::kData;
  ++chunks_;
  if (size_ > limits::kChunkBytesMax) return false;
  return chunks_ <= limits::kChunksFree || data_bytes_ >= chunks_ * limits::kChunkBytesAverageMin;
}

// Trailers are read and dropped: nothing in them could change what the body is.
bool ChunkedDecoder::TakeTrailer(char c) {
  if (++trailer_bytes_ > limits::kHeaderBytesMax) return false;
  switch (state_) {
    case State::kTrailerStart:
      state_ = c == '\r' ? State::kEndLf : State::kTrailer;
      return c == '\r' || (!IsControl(c) && c != ' ' && c != '\t');
    case State::kTrailer:
      if (c == '\r') state_ = State::kTrailerLf;
      return c == '\r' || !IsControl(c);
    case State::kTrailerLf:
      state_ = State::kTrailerStart;
      return c == '\n';
    default:
      state_ = State::kEnd;
      return c == '\n';
  }
}

}  // namespace tensord::front
