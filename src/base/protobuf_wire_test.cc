// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/protobuf_wire.h"

#include <gtest/gtest.h>

namespace tensord::base {
namespace {

TEST(ProtobufWire, FieldsComeBackAsTheyWereWritten) {
  std::string bytes;
  AppendVarintField(1, 300, &bytes);
  AppendBytesField(15, "name", &bytes);
  AppendVarintField(16, UINT64_MAX, &bytes);

  WireReader reader(bytes);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1u);
  EXPECT_EQ(reader.number(), 300u);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.bytes(), "name");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.number(), UINT64_MAX);
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.ok());
}

TEST(ProtobufWire, EveryCutOfAMessageIsRefusedOrEndsAtAFieldBorder) {
  std::string bytes;
  AppendVarintField(1, 1u << 30, &bytes);
  AppendBytesField(2, std::string(200, 'x'), &bytes);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    WireReader reader(std::string_view(bytes).substr(0, cut));
    while (reader.Next()) {
    }
    EXPECT_EQ(reader.ok(), cut == 0 || cut == 6) << cut;
  }
}

TEST(ProtobufWire, AVarintOfMoreThan64BitsIsRefused) {
  std::string_view bytes("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
  uint64_t value = 0;
  EXPECT_FALSE(ReadVarint(&bytes, &value));
}

TEST(ProtobufWire, GroupsAndFieldZeroAreRefused) {
  for (std::string_view bytes : {std::string_view("\x0b", 1), std::string_view("\x00\x01", 2)}) {
    WireReader reader(bytes);
    EXPECT_FALSE(reader.Next());
    EXPECT_FALSE(reader.ok());
  }
}

}  // namespace
}  // namespace tensord::base
