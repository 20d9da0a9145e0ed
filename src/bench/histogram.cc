// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/histogram.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "wire/json/base64.h"

// Source of layout and encoding: github.com/HdrHistogram/HdrHistogram, AbstractHistogram.java.
namespace tensord::bench {
namespace {

constexpr int64_t kLargest = 3600ll * 1'000'000'000;
constexpr int kDigits = 3;
constexpr int kHalfBits = 10;  // 2^11 steps in the first bucket: the least for three digits.
constexpr int64_t kHalf = 1 << kHalfBits;
constexpr uint64_t kFirstMask = 2 * kHalf - 1;

size_t IndexOf(int64_t value) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(value) | kFirstMask));
  const int bucket = bits - (kHalfBits + 1);
  return static_cast<size_t>((static_cast<int64_t>(bucket + 1) << kHalfBits) +
                             ((value >> bucket) - kHalf));
}

// The largest value that is counted at this index.
int64_t ValueAt(size_t index) {
  int64_t bucket = (static_cast<int64_t>(index) >> kHalfBits) - 1;
  int64_t step = (static_cast<int64_t>(index) & (kHalf - 1)) + kHalf;
  if (bucket < 0) {
    step -= kHalf;
    bucket = 0;
  }
  return ((step + 1) << bucket) - 1;
}

void AppendBigEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = bytes - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendZigZag(int64_t value, std::string* out) {
  auto bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  while (bits >= 0x80) {
    out->push_back(static_cast<char>(bits | 0x80));
    bits >>= 7;
  }
  out->push_back(static_cast<char>(bits));
}

std::string Deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int rc = compress(reinterpret_cast<Bytef*>(out.data()), &size,
                          reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  TENSORD_CHECK(rc == Z_OK);
  out.resize(size);
  return out;
}

}  // namespace

void Histogram::Record(int64_t nanoseconds) {
  const int64_t value = std::clamp<int64_t>(nanoseconds, 0, kLargest);
  const size_t index = IndexOf(value);
  if (index >= counts_.size()) counts_.resize(index + 1);
  ++counts_[index];
  ++count_;
  max_ = std::max(max_, value);
}

void Histogram::Merge(const Histogram& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
  for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

void Histogram::Clear() {
  std::fill(counts_.begin(), counts_.end(), 0);
  count_ = 0;
  max_ = 0;
}

double Histogram::mean() const {
  if (count_ == 0) return 0;
  double sum = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    sum += static_cast<double>(counts_[i]) * static_cast<double>(ValueAt(i));
  }
  return sum / static_cast<double>(count_);
}

int64_t Histogram::Quantile(double share) const {
  const auto wanted =
      static_cast<uint64_t>(std::max(1.0, std::ceil(share * static_cast<double>(count_) - 1e-9)));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return std::min(ValueAt(i), max_);
  }
  return max_;
}

std::string Histogram::Encode() const {
  std::string counts;
  int64_t zeros = 0;
  for (const uint64_t count : counts_) {
    if (count == 0) {
      ++zeros;
      continue;
    }
    if (zeros > 0) AppendZigZag(-zeros, &counts);
    zeros = 0;
    AppendZigZag(static_cast<int64_t>(count), &counts);
  }
  std::string plain;
  AppendBigEndian(0x1c849313, 4, &plain);  // V2, words of one byte.
  AppendBigEndian(counts.size(), 4, &plain);
  AppendBigEndian(0, 4, &plain);  // Offset of the first index.
  AppendBigEndian(kDigits, 4, &plain);
  AppendBigEndian(1, 8, &plain);  // The smallest value told apart from 0.
  AppendBigEndian(kLargest, 8, &plain);
  AppendBigEndian(std::bit_cast<uint64_t>(1.0), 8, &plain);  // Counts are not scaled.
  plain += counts;
  const std::string deflated = Deflated(plain);
  std::string bytes;
  AppendBigEndian(0x1c849314, 4, &bytes);  // The same, compressed.
  AppendBigEndian(deflated.size(), 4, &bytes);
  bytes += deflated;
  std::string text;
  wire::AppendBase64(bytes, &text);
  return text;
}

}  // namespace tensord::bench
