// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/inflater.h"

#include <zlib.h>

#include <algorithm>

#include "base/limits.h"

namespace tensord::front {
namespace {

constexpr int kLargestWindowBits = 15;
constexpr int kGzipOnly = 16;  // Added to the window bits: zlib's way to ask for a gzip header.

}  // namespace

Inflater::Inflater(Format format, std::span<const std::byte> input, size_t bytes_max,
                   BodyBuffer* out)
    : format_(format),
      input_(input),
      size_max_(out->size() + bytes_max),
      out_(out),
      stream_(std::make_unique<z_stream>()) {
  ready_ = inflateInit2(stream_.get(),
                        kLargestWindowBits + (format == Format::kGzip ? kGzipOnly : 0)) == Z_OK;
}

Inflater::~Inflater() {
  if (ready_) inflateEnd(stream_.get());
}

Inflater::Result Inflater::Step() {
  if (!ready_) return Result::kNoMemory;
  // Both sides are sliced: a stream can take much input without giving any output.
  const size_t given = std::min(input_.size(), limits::kInflateSliceBytes);
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
  stream_->avail_in = static_cast<uInt>(given);
  // One byte more than allowed, to notice the first that is too many.
  if (out_->full() && !out_->MakeRoom(size_max_ + 1)) return Result::kNoMemory;
  const std::span<std::byte> room = out_->Writable(limits::kInflateSliceBytes);
  if (room.empty()) return Result::kNoMemory;
  stream_->next_out = reinterpret_cast<Bytef*>(room.data());
  stream_->avail_out = static_cast<uInt>(room.size());
  const int rc = inflate(stream_.get(), Z_NO_FLUSH);
  input_ = input_.subspan(given - stream_->avail_in);
  out_->Commit(room.size() - stream_->avail_out);
  if (out_->size() > size_max_) return Result::kTooLarge;
  if (rc == Z_STREAM_END) return EndOfStream();
  if (rc == Z_MEM_ERROR) return Result::kNoMemory;
  // Z_BUF_ERROR with input left asks for more room; without, the input ends too early.
  if (rc != Z_OK && rc != Z_BUF_ERROR) return Result::kCorrupt;
  if (input_.empty() && stream_->avail_out > 0) return Result::kCorrupt;
  return Result::kMore;
}

Inflater::Result Inflater::EndOfStream() {
  if (input_.empty()) return Result::kDone;
  // gzip allows members in a row; anything else behind the end is junk.
  const bool member = format_ == Format::kGzip && input_.size() >= 2 &&
                      input_[0] == std::byte{0x1f} && input_[1] == std::byte{0x8b};
  if (!member || ++members_ > limits::kGzipMembersMax) return Result::kCorrupt;
  if (inflateReset(stream_.get()) != Z_OK) return Result::kCorrupt;
  return Result::kMore;
}

std::optional<Inflater::Format> BodyFormat(std::string_view content_encoding) {
  if (content_encoding.find("gzip") != std::string_view::npos) return Inflater::Format::kGzip;
  if (content_encoding == "deflate") return Inflater::Format::kZlib;
  return std::nullopt;
}

}  // namespace tensord::front
