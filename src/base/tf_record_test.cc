// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/tf_record.h"

#include <string>

#include "gtest/gtest.h"

namespace tensord::base {
namespace {

TEST(Crc32c, IsTheOneOfTheRfc) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(TfRecord, IsAsTensorFlowWritesIt) {
  std::string file;
  AppendTfRecord("abc", &file);
  // tf.io.TFRecordWriter().write(b"abc").
  EXPECT_EQ(file, std::string("\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
                              "abc"
                              "\x6e\x57\xf1\x21",
                              19));
}

TEST(TfRecord, ReadsBackWhatItWrote) {
  std::string file;
  AppendTfRecord("some bytes of a record", &file);
  const std::string_view all(file);
  const auto length = TfRecordLength(all.substr(0, kTfRecordHeaderBytes));
  ASSERT_EQ(length, 22u);
  const std::string_view record = all.substr(kTfRecordHeaderBytes, *length);
  EXPECT_TRUE(TfRecordMatches(record, all.substr(kTfRecordHeaderBytes + *length)));
  EXPECT_FALSE(TfRecordMatches("some bytes of another ", all.substr(all.size() - 4)));
}

TEST(TfRecord, KnowsWhatIsNoHeader) {
  EXPECT_FALSE(TfRecordLength("no header at").has_value());
  std::string file;
  AppendTfRecord("abc", &file);
  file[0] = 4;
  EXPECT_FALSE(TfRecordLength(std::string_view(file).substr(0, 12)).has_value());
}

}  // namespace
}  // namespace tensord::base
