// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/histogram.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <vector>

#include "wire/json/base64.h"

namespace tensord::bench {
namespace {

TEST(Histogram, QuantilesAreWithinATenthOfAPercentOfTheSortedValues) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(13, 2);  // Around 0.4 ms, long-tailed.
  Histogram histogram;
  std::vector<int64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(static_cast<int64_t>(latency(random)));
    histogram.Record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.001, 0.5, 0.9, 0.99, 0.999, 0.9999}) {
    const auto exact = static_cast<double>(values[static_cast<size_t>(share * 100'000 + 0.5) - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.Quantile(share)), exact, exact * 0.001 + 1) << share;
  }
  EXPECT_EQ(histogram.Quantile(1), values.back());
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(Histogram, IsEmptyAtFirstAndAfterClear) {
  Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.Record(1'000);
  histogram.Clear();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Quantile(1), 0);
}

TEST(Histogram, TheExtremesAreClampedAndCounted) {
  Histogram histogram;
  histogram.Record(-5);
  histogram.Record(int64_t{1} << 62);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_EQ(histogram.max(), 3'600'000'000'000);
}

TEST(Histogram, MergingIsAsRecordingInOne) {
  Histogram all;
  Histogram parts[2];
  for (int64_t i = 0; i < 1'000; ++i) {
    all.Record(i * i);
    parts[i % 2].Record(i * i);
  }
  parts[0].Merge(parts[1]);
  EXPECT_EQ(parts[0].Encode(), all.Encode());
  EXPECT_EQ(parts[0].Quantile(0.99), all.Quantile(0.99));
}

// The header and the first counts, taken apart by hand; bench.md says how tools read the rest.
TEST(Histogram, EncodesAsTheOriginalDoes) {
  Histogram histogram;
  histogram.Record(3);
  histogram.Record(3);
  std::string bytes;
  ASSERT_TRUE(wire::AppendBase64Decoded(histogram.Encode(), &bytes));
  EXPECT_EQ(bytes.substr(0, 4), "\x1c\x84\x93\x14");
  std::string plain(100, '\0');
  uLongf size = plain.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(plain.data()), &size,
                       reinterpret_cast<const Bytef*>(bytes.data() + 8), bytes.size() - 8),
            Z_OK);
  plain.resize(size);
  ASSERT_EQ(plain.size(), 42u);
  EXPECT_EQ(plain.substr(0, 4), "\x1c\x84\x93\x13");
  EXPECT_EQ(plain[7], 2);   // Bytes of counts.
  EXPECT_EQ(plain[15], 3);  // Digits.
  EXPECT_EQ(plain[40], 5);  // Three zeros, zigzag of -3.
  EXPECT_EQ(plain[41], 4);  // Twice, zigzag of 2.
}

}  // namespace
}  // namespace tensord::bench
