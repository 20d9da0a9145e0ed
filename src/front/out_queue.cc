// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/out_queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tensord::front {
namespace {

// Below this, a copy is cheaper than one more entry for the kernel to walk.
constexpr size_t kCopyBelow = 2048;
constexpr size_t kPiecesPerWrite = 128;
// An emptied queue keeps this much memory for the next turn.
constexpr size_t kKeptBytes = 64 * 1024;

}  // namespace

void OutQueue::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  if (pieces_.empty() || pieces_.back().data != nullptr) {
    pieces_.push_back({.offset = gathered_.size()});
  }
  gathered_.append(bytes);
  pieces_.back().size += bytes.size();
  bytes_ += bytes.size();
}

void OutQueue::AppendShared(std::string_view bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() < kCopyBelow) return Append(bytes);
  pieces_.push_back({.data = bytes.data(), .size = bytes.size(), .owner = std::move(owner)});
  bytes_ += bytes.size();
}

IoResult OutQueue::WriteTo(ByteStream* stream) {
  size_t written = 0;
  while (bytes_ > 0) {
    std::array<iovec, kPiecesPerWrite> vectors;
    size_t count = 0;
    for (size_t i = first_; i < pieces_.size() && count < vectors.size(); ++i) {
      const Piece& piece = pieces_[i];
      const char* data = piece.data != nullptr ? piece.data : gathered_.data();
      vectors[count++] = {.iov_base = const_cast<char*>(data + piece.offset),
                          .iov_len = piece.size};
    }
    const IoResult result = stream->Write(std::span(vectors.data(), count));
    if (result.kind != IoResult::kDone) return {.kind = result.kind, .bytes = written};
    written += result.bytes;
    Drop(result.bytes);
  }
  return {.kind = IoResult::kDone, .bytes = written};
}

void OutQueue::Drop(size_t bytes) {
  bytes_ -= bytes;
  if (bytes_ == 0) return Clear();
  while (bytes > 0) {
    Piece& piece = pieces_[first_];
    const size_t taken = std::min(bytes, piece.size);
    piece.offset += taken;
    piece.size -= taken;
    bytes -= taken;
    if (piece.size == 0) {
      piece.owner.reset();
      ++first_;
    }
  }
}

void OutQueue::Clear() {
  pieces_.clear();
  first_ = 0;
  bytes_ = 0;
  gathered_.clear();
  if (gathered_.capacity() > kKeptBytes) gathered_.shrink_to_fit();
}

}  // namespace tensord::front
