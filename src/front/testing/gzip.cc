// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/testing/gzip.h"

#include <zlib.h>

#include <array>

#include "base/check.h"

namespace tensord::front {
namespace {

constexpr int kWindowBits = 15;
constexpr int kGzip = 16;
constexpr int kEither = 32;

Bytef* Bytes(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

std::string Deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  TENSORD_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = Bytes(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = Bytes(out);
  stream.avail_out = static_cast<uInt>(out.size());
  TENSORD_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

std::string Gzip(std::string_view text) { return Deflated(text, kWindowBits + kGzip); }

std::string Zlib(std::string_view text) { return Deflated(text, kWindowBits); }

std::string Inflated(std::string_view packed) {
  z_stream stream{};
  TENSORD_CHECK(inflateInit2(&stream, kWindowBits + kEither) == Z_OK);
  stream.next_in = Bytes(packed);
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::array<char, 65536> piece;
  int rc = Z_OK;
  while (rc == Z_OK) {
    stream.next_out = Bytes({piece.data(), piece.size()});
    stream.avail_out = static_cast<uInt>(piece.size());
    rc = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return rc == Z_STREAM_END ? out : "";
}

}  // namespace tensord::front
