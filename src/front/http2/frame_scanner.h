// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tensord::front {

// Finds the frame heads in what an HTTP/2 client sends, the connection preface skipped. The library
// drops some frames without a word (unknown types, priorities, data for closed streams); a flood of
// them has to be seen all the same.
//
// Threads: one.
class FrameScanner {
 public:
  struct Frame {
    uint8_t type = 0;
    uint8_t flags = 0;
    int32_t stream = 0;
    int32_t parent = 0;  // PRIORITY: the stream it depends on.
  };

  // Moves *at to just behind the next head; none, with *at at the end, when it has not all come.
  std::optional<Frame> Next(std::span<const std::byte> bytes, size_t* at) {
    const size_t skipped = std::min(skip_, bytes.size() - *at);
    *at += skipped;
    skip_ -= skipped;
    while (have_ < needed() && *at < bytes.size()) {
      head_[have_++] = std::to_integer<uint8_t>(bytes[(*at)++]);
    }
    if (have_ < needed()) return std::nullopt;
    return Take();
  }

 private:
  static constexpr size_t kPrefaceBytes = 24;
  static constexpr size_t kHeadBytes = 9;
  static constexpr size_t kWordBytes = 4;
  static constexpr uint8_t kPriority = 2;

  size_t length() const { return size_t{head_[0]} << 16 | size_t{head_[1]} << 8 | head_[2]; }
  bool has_parent() const { return head_[3] == kPriority && length() >= kWordBytes; }
  size_t needed() const {
    return have_ >= kHeadBytes && has_parent() ? kHeadBytes + kWordBytes : kHeadBytes;
  }
  int32_t Word(size_t at) const {
    const uint32_t word = uint32_t{head_[at]} << 24 | uint32_t{head_[at + 1]} << 16 |
                          uint32_t{head_[at + 2]} << 8 | head_[at + 3];
    return static_cast<int32_t>(word & 0x7fffffff);  // The first bit means something else.
  }

  Frame Take() {
    const Frame frame{.type = head_[3],
                      .flags = head_[4],
                      .stream = Word(5),
                      .parent = has_parent() ? Word(kHeadBytes) : 0};
    skip_ = length() - (have_ - kHeadBytes);
    have_ = 0;
    return frame;
  }

  size_t skip_ = kPrefaceBytes;
  size_t have_ = 0;
  std::array<uint8_t, kHeadBytes + kWordBytes> head_{};
};

// The streams that closed last, and who closed them. A frame for one that the client ended itself
// is a fault of the client's; for one that the server ended it may just have been under way.
//
// Threads: one.
class ClosedStreams {
 public:
  enum class Kind : uint8_t { kUnknown, kForgotten, kByClient, kByServer };

  void Add(int32_t id, bool by_server) {
    Entry& entry = entries_[next_++ % entries_.size()];
    forgotten_ = std::max(forgotten_, entry.id);
    entry = {.id = id, .by_server = by_server};
  }
  Kind Find(int32_t id) const {
    for (const Entry& entry : entries_) {
      if (entry.id == id) return entry.by_server ? Kind::kByServer : Kind::kByClient;
    }
    return id <= forgotten_ ? Kind::kForgotten : Kind::kUnknown;
  }

 private:
  struct Entry {
    int32_t id = 0;
    bool by_server = false;
  };
  std::array<Entry, 64> entries_{};
  size_t next_ = 0;
  int32_t forgotten_ = 0;  // Higher than any id that was pushed out.
};

}  // namespace tensord::front
