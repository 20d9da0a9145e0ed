// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/byte_stream.h"

namespace tensord::front {

// Bytes on their way to a client, in order. Small ones are gathered into one buffer; large ones
// stay where they are and keep their owner alive, so that an answer's body is never copied here.
//
// Threads: its connection's loop.
class OutQueue {
 public:
  void Append(std::string_view bytes);
  // Lifetime: `owner` keeps `bytes` valid and unchanged. Short bytes are copied instead.
  void AppendShared(std::string_view bytes, std::shared_ptr<const void> owner);

  bool empty() const { return bytes_ == 0; }
  size_t bytes() const { return bytes_; }

  // Writes as much as the stream takes now. `bytes` of the result counts what left, even when the
  // kind is kWantWrite; kDone means that the queue is empty.
  IoResult WriteTo(ByteStream* stream);
  void Clear();

 private:
  struct Piece {
    const char* data = nullptr;  // Null: `offset` into gathered_, which may still move.
    size_t offset = 0;
    size_t size = 0;
    std::shared_ptr<const void> owner = {};
  };

  void Drop(size_t bytes);

  std::string gathered_;
  std::vector<Piece> pieces_;
  size_t first_ = 0;  // Pieces before this one are written.
  size_t bytes_ = 0;
};

}  // namespace tensord::front
