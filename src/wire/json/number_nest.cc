// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/number_nest.h"

#include <cstring>

#include "wire/json/plain_number.h"

namespace tensord::wire {
namespace {

template <typename T>
class NestReader {
 public:
  NestReader(const char* at, const char* end, std::span<std::byte> room)
      : at_(at), end_(end), room_(room) {}

  // False when it is not such a nest; true with at() behind it.
  bool Read(NumberNest* nest) {
    if (!OpenFirst()) return false;
    while (true) {
      if (!ReadNumbers()) return false;
      int level = rank_ - 1;  // Lists that are still open.
      while (level > 0) {
        ++counts_[Index(level - 1)];
        const char next = TakeNext();
        if (next == ',') break;
        if (next != ']' || !Close(level - 1)) return false;
        --level;
      }
      if (level == 0) break;
      for (; level < rank_; ++level) {
        if (TakeNext() != '[') return false;
        counts_[Index(level)] = 0;
      }
    }
    *nest = {.rank = rank_, .dims = dims_, .elements = elements_};
    return true;
  }

  const char* at() const { return at_; }

 private:
  static size_t Index(int level) { return static_cast<size_t>(level); }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  // The next byte that is no white space; 0 at the end.
  char TakeNext() {
    SkipSpace();
    return at_ == end_ ? '\0' : *at_++;
  }

  bool OpenFirst() {
    while (true) {
      SkipSpace();
      if (at_ == end_ || *at_ != '[') return rank_ > 0;
      if (rank_ == limits::kRankMax) return false;
      ++at_;
      ++rank_;
    }
  }

  // The list on that level has ended: is it as long as the first one was?
  bool Close(int level) {
    int64_t& size = dims_[Index(level)];
    const int64_t count = counts_[Index(level)];
    if (size == 0) size = count;
    return size == count;
  }

  // The numbers of an innermost list, and the bracket behind them.
  bool ReadNumbers() {
    const uint64_t first = elements_;
    while (true) {
      SkipSpace();
      if (elements_ == room_.size() / sizeof(T)) return false;
      T value = 0;
      const char* const after = ReadPlainNumber(at_, end_, &value);
      if (after == nullptr) return false;
      std::memcpy(room_.data() + elements_ * sizeof(T), &value, sizeof(T));
      ++elements_;
      at_ = after;
      const char next = TakeNext();
      if (next == ',') continue;
      counts_[Index(rank_ - 1)] = static_cast<int64_t>(elements_ - first);
      return next == ']' && Close(rank_ - 1);
    }
  }

  const char* at_;
  const char* const end_;
  const std::span<std::byte> room_;
  int rank_ = 0;
  uint64_t elements_ = 0;
  std::array<int64_t, limits::kRankMax> dims_{};    // 0 before the level's first list has ended.
  std::array<int64_t, limits::kRankMax> counts_{};  // Values so far in each open list.
};

}  // namespace

template <typename T>
const char* ReadNumberNest(const char* at, const char* end, std::span<std::byte> room,
                           NumberNest* nest) {
  NestReader<T> reader(at, end, room);
  return reader.Read(nest) ? reader.at() : nullptr;
}

#define TENSORD_INSTANTIATE(T)                                                           \
  template const char* ReadNumberNest<T>(const char*, const char*, std::span<std::byte>, \
                                         NumberNest*)
TENSORD_INSTANTIATE(float);
TENSORD_INSTANTIATE(double);
TENSORD_INSTANTIATE(int8_t);
TENSORD_INSTANTIATE(int16_t);
TENSORD_INSTANTIATE(int32_t);
TENSORD_INSTANTIATE(int64_t);
TENSORD_INSTANTIATE(uint8_t);
TENSORD_INSTANTIATE(uint16_t);
TENSORD_INSTANTIATE(uint32_t);
TENSORD_INSTANTIATE(uint64_t);
#undef TENSORD_INSTANTIATE

}  // namespace tensord::wire
