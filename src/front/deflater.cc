// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/deflater.h"

#include <zlib.h>

#include <algorithm>

#include "base/limits.h"

namespace tensord::front {
namespace {

constexpr int kWindowBits = 15;
constexpr int kGzip = 16;  // Added to the window bits: zlib's way to ask for a gzip header.
constexpr int kMemoryLevel = 8;

}  // namespace

Deflater::Deflater(Format format, std::string_view input, base::ByteBudget* budget)
    : input_(input), size_max_(input.size()), held_(budget), stream_(std::make_unique<z_stream>()) {
  // Tensors hardly gain from more effort, and the server's CPU is what clients wait for.
  ready_ = deflateInit2(stream_.get(), Z_BEST_SPEED, Z_DEFLATED,
                        kWindowBits + (format == Format::kGzip ? kGzip : 0), kMemoryLevel,
                        Z_DEFAULT_STRATEGY) == Z_OK;
}

Deflater::~Deflater() {
  if (ready_) deflateEnd(stream_.get());
}

Deflater::Result Deflater::Step() {
  if (!ready_) return Result::kNoGain;
  const size_t given = std::min(input_.size(), limits::kDeflateSliceBytes);
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
  stream_->avail_in = static_cast<uInt>(given);
  input_ = input_.substr(given);
  while (true) {
    const size_t have = output_.size();
    const size_t room = std::min(limits::kDeflateSliceBytes, size_max_ - have);
    if (room == 0 || !held_.GrowTo(have + room)) return Result::kNoGain;
    output_.resize(have + room);
    stream_->next_out = reinterpret_cast<Bytef*>(output_.data() + have);
    stream_->avail_out = static_cast<uInt>(room);
    const int rc = deflate(stream_.get(), input_.empty() ? Z_FINISH : Z_NO_FLUSH);
    output_.resize(have + room - stream_->avail_out);
    if (rc == Z_STREAM_END) return Result::kDone;
    if (rc != Z_OK && rc != Z_BUF_ERROR) return Result::kNoGain;
    if (stream_->avail_out > 0 && !input_.empty()) return Result::kMore;
  }
}

}  // namespace tensord::front
