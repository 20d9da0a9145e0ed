// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/pack_answer.h"

#include <gtest/gtest.h>

#include "base/byte_budget.h"
#include "front/body_buffer.h"
#include "front/inflater.h"

namespace tensord::front {
namespace {

TEST(AcceptedFormat, IsTheFirstOfOursThatTheHeaderTakes) {
  const struct {
    const char* header;
    std::optional<Deflater::Format> format;
  } kCases[] = {
      {"", std::nullopt},
      {"identity", std::nullopt},
      {"br, zstd", std::nullopt},
      {"gzip", Deflater::Format::kGzip},
      {"deflate", Deflater::Format::kZlib},
      {"deflate, GZIP", Deflater::Format::kGzip},
      {"br;q=1.0, deflate;q=0.5", Deflater::Format::kZlib},
      {"gzip;q=0, deflate", Deflater::Format::kZlib},
      {"gzip;q=0.000", std::nullopt},
      {"gzip; q=0.01", Deflater::Format::kGzip},
      {",,;q=0,", std::nullopt},
      {"gzipped", std::nullopt},
  };
  for (const auto& c : kCases) EXPECT_EQ(AcceptedFormat(c.header), c.format) << c.header;
}

TEST(Pack, WhatInflatesToTheBodyOrNothing) {
  const std::string text(200'000, 'a');
  for (const auto& [packed_as, format] :
       {std::pair(Deflater::Format::kGzip, Inflater::Format::kGzip),
        std::pair(Deflater::Format::kZlib, Inflater::Format::kZlib)}) {
    const std::optional<std::string> packed = Pack(packed_as, text);
    ASSERT_TRUE(packed.has_value());
    EXPECT_LT(packed->size(), text.size() / 50);
    base::ByteBudget budget(1 << 20);
    BodyBuffer out(&budget);
    Inflater inflater(format, std::as_bytes(std::span(*packed)), 1 << 20, &out);
    Inflater::Result result = inflater.Step();
    while (result == Inflater::Result::kMore) result = inflater.Step();
    ASSERT_EQ(result, Inflater::Result::kDone);
    EXPECT_EQ(out.size(), text.size());
  }
  EXPECT_FALSE(Pack(Deflater::Format::kGzip, "abc").has_value());
}

}  // namespace
}  // namespace tensord::front
