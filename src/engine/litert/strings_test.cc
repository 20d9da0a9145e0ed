// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace tensord::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

tensor::Buffer Packed(const std::vector<std::string>& texts) {
  uint64_t payload = 0;
  for (const std::string& text : texts) payload += text.size();
  tensor::Buffer buffer(tensor::PackedStringBytes(texts.size(), payload));
  tensor::StringWriter writer(buffer.bytes(), texts.size());
  for (const std::string& text : texts) writer.Add(text);
  return buffer;
}

tensor::Buffer Lite(const std::vector<std::string>& texts) {
  const tensor::Buffer packed = Packed(texts);
  auto lite = ToLiteStrings(*tensor::StringReader::Open(packed.bytes(), texts.size()));
  EXPECT_TRUE(lite.ok());
  return *std::move(lite);
}

TEST(LiteStrings, ComeBackAsTheyWere) {
  const tensor::Buffer lite = Lite({"ab", "", std::string("c\0d", 3)});
  EXPECT_THAT(*FromLiteStrings(lite.bytes(), 3),
              ElementsAre("ab", "", std::string_view("c\0d", 3)));
  EXPECT_THAT(*FromLiteStrings(Lite({}).bytes(), 0), IsEmpty());
}

TEST(LiteStrings, HaveTheFormThatTheLibraryReads) {
  const tensor::Buffer lite = Lite({"ab", "cde"});
  const std::string bytes(reinterpret_cast<const char*>(lite.bytes().data()), lite.size());
  EXPECT_EQ(bytes, std::string("\x02\0\0\0\x10\0\0\0\x12\0\0\0\x15\0\0\0abcde", 21));
}

TEST(LiteStrings, OfAHostileModelAreRefused) {
  const tensor::Buffer lite = Lite({"ab", "cde"});
  const auto with = [&lite](size_t at, int32_t value) {
    tensor::Buffer copy(lite.size());
    std::memcpy(copy.bytes().data(), lite.bytes().data(), lite.size());
    std::memcpy(copy.bytes().data() + at, &value, sizeof(value));
    return FromLiteStrings(copy.bytes(), 2).ok();
  };
  EXPECT_TRUE(with(0, 2));
  EXPECT_FALSE(with(0, 3));
  EXPECT_FALSE(with(0, -1));
  EXPECT_FALSE(with(4, 4));    // Into its own header.
  EXPECT_FALSE(with(4, 19));   // Behind its own end.
  EXPECT_FALSE(with(12, 22));  // Beyond the tensor.
  EXPECT_FALSE(with(12, -5));
  EXPECT_FALSE(FromLiteStrings(lite.bytes().first(10), 2).ok());
  EXPECT_FALSE(FromLiteStrings({}, 0).ok());
}

}  // namespace
}  // namespace tensord::engine
