// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/list_skimmer.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tensord::wire {
namespace {

constexpr int kBlockBytes = 64;

// Where in a block each of these stands: bit i for byte i.
struct Marks {
  uint64_t opening = 0;
  uint64_t closing = 0;
  uint64_t commas = 0;
  uint64_t strangers = 0;  // Quotation marks and braces.
};

#ifdef __SSE2__

uint64_t MaskOf(__m128i bytes) { return static_cast<uint32_t>(_mm_movemask_epi8(bytes)); }

Marks MarksOf(const char* block) {
  Marks marks;
  for (int i = 0; i < kBlockBytes; i += 16) {
    __m128i bytes;
    std::memcpy(&bytes, block + i, sizeof(bytes));
    const auto is = [&bytes](char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
    marks.opening |= MaskOf(is('[')) << i;
    marks.closing |= MaskOf(is(']')) << i;
    marks.commas |= MaskOf(is(',')) << i;
    marks.strangers |= MaskOf(_mm_or_si128(is('"'), _mm_or_si128(is('{'), is('}')))) << i;
  }
  return marks;
}

#else

Marks MarksOf(const char* block) {
  Marks marks;
  for (int i = 0; i < kBlockBytes; ++i) {
    const char c = block[i];
    marks.opening |= uint64_t{c == '['} << i;
    marks.closing |= uint64_t{c == ']'} << i;
    marks.commas |= uint64_t{c == ','} << i;
    marks.strangers |= uint64_t{c == '"' || c == '{' || c == '}'} << i;
  }
  return marks;
}

#endif

// The bits below bit i.
uint64_t Below(int i) { return i == 64 ? ~uint64_t{0} : (uint64_t{1} << i) - 1; }

uint64_t Count(uint64_t bits) { return static_cast<uint64_t>(std::popcount(bits)); }

class Skimmer {
 public:
  explicit Skimmer(ListCounts* counts) : counts_(*counts) {}

  // Takes one block. Returns where in it the nest ends (behind the bracket), 0 when it goes on, -1
  // when it is not ours.
  int Take(const Marks& marks) {
    uint64_t brackets = marks.opening | marks.closing;
    int at = 0;
    while (brackets != 0) {
      const int next = std::countr_zero(brackets);
      if (depth_ == 1) counts_.outer_commas += Count(marks.commas & Below(next) & ~Below(at));
      at = next + 1;
      if ((marks.opening >> next & 1) != 0) {
        counts_.depth_max = std::max(counts_.depth_max, ++depth_);
      } else if (--depth_ == 0) {
        counts_.commas += Count(marks.commas & Below(at));
        return (marks.strangers & Below(at)) != 0 ? -1 : at;
      }
      brackets &= brackets - 1;
    }
    if (depth_ == 1) counts_.outer_commas += Count(marks.commas & ~Below(at));
    counts_.commas += Count(marks.commas);
    return marks.strangers != 0 ? -1 : 0;
  }

 private:
  ListCounts& counts_;
  uint64_t depth_ = 0;
};

}  // namespace

const char* SkimLists(const char* at, const char* end, ListCounts* counts) {
  Skimmer skimmer(counts);
  char last[kBlockBytes];
  while (at != end) {
    const char* block = at;
    auto bytes = static_cast<int>(std::min<std::ptrdiff_t>(end - at, kBlockBytes));
    if (bytes < kBlockBytes) {
      std::memset(last, ' ', sizeof(last));
      std::memcpy(last, at, static_cast<size_t>(bytes));
      block = last;
    }
    const int found = skimmer.Take(MarksOf(block));
    if (found != 0) return found < 0 ? nullptr : at + found;
    at += bytes;
  }
  return nullptr;
}

}  // namespace tensord::wire
