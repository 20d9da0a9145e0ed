// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/record_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"
#include "base/tf_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Written(const std::string& bytes) {
  std::string path = testing::TempDir() + "/records";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string Records(const std::vector<std::string>& records) {
  std::string bytes;
  for (const std::string& record : records) base::AppendTfRecord(record, &bytes);
  return bytes;
}

TEST(RecordReader, GivesTheRecordsInOrder) {
  auto file = RecordReader::Open(Written(Records({"one", "", "three"})));
  ASSERT_TRUE(file.ok());
  const RecordReader::Piece piece = file->Next();
  EXPECT_THAT(piece.records, ElementsAre("one", "", "three"));
  EXPECT_TRUE(piece.end);
  EXPECT_TRUE(piece.status.ok());
}

TEST(RecordReader, HoldsNoMoreThanAPiece) {
  const std::string large(600'000, 'x');
  auto file = RecordReader::Open(Written(Records({large, large, large})));
  ASSERT_TRUE(file.ok());
  const RecordReader::Piece first = file->Next();
  EXPECT_THAT(first.records, SizeIs(2));
  EXPECT_FALSE(first.end);
  EXPECT_THAT(file->Next().records, ElementsAre(large));
}

TEST(RecordReader, WithoutRecordsIsAtItsEnd) {
  auto file = RecordReader::Open(Written(""));
  ASSERT_TRUE(file.ok());
  const RecordReader::Piece piece = file->Next();
  EXPECT_THAT(piece.records, IsEmpty());
  EXPECT_TRUE(piece.end);
  EXPECT_TRUE(piece.status.ok());
}

TEST(RecordReader, SaysWhichRecordIsDamagedAfterThoseThatAreNot) {
  std::string bytes = Records({"one", "two"});
  bytes[bytes.size() - 5] ^= 1;
  auto file = RecordReader::Open(Written(bytes));
  const RecordReader::Piece piece = file->Next();
  EXPECT_THAT(piece.records, ElementsAre("one"));
  EXPECT_TRUE(piece.end);
  EXPECT_EQ(piece.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(base::Message(piece.status)), HasSubstr("record 2 is damaged"));
}

TEST(RecordReader, KnowsWhatIsNoRecordFile) {
  for (const char* text : {"short", "this is a text file, not one of records"}) {
    auto file = RecordReader::Open(Written(text));
    const absl::Status status = file->Next().status;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(base::Message(status)), HasSubstr("TFRecord"));
  }
  const std::string cut = Records({"a record that is cut"});
  auto file = RecordReader::Open(Written(cut.substr(0, cut.size() - 6)));
  EXPECT_THAT(std::string(base::Message(file->Next().status)), HasSubstr("cut short"));
}

TEST(RecordReader, IsARegularFile) {
  EXPECT_EQ(RecordReader::Open(testing::TempDir() + "/no such file").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(RecordReader::Open(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::string fifo = testing::TempDir() + "/fifo";
  unlink(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(RecordReader::Open(fifo).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tensord::serve
