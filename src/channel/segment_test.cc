// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/limits.h"
#include "gtest/gtest.h"

namespace tensord::channel {
namespace {

constexpr uint64_t kBytes = 64 * 1024;

std::span<std::byte> Fill(std::span<std::byte> bytes, int value) {
  std::memset(bytes.data(), value, bytes.size());
  return bytes;
}

TEST(Segment, TheWorkerReadsWhatTheFrontWrote) {
  const auto front = RequestSegment::Create(kBytes);
  ASSERT_TRUE(front.ok()) << front.status();
  Fill(front->Bytes(4096, 100), 7);
  const auto worker = MappedSegment::Map(front->fd(), MappedSegment::Access::kRead);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->size(), kBytes);
  const auto bytes = worker->Read(4096, 100);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)[99], std::byte{7});
}

TEST(Segment, TheFrontCopiesWhatTheWorkerWrote) {
  const auto front = ResponseSegment::Create(kBytes);
  ASSERT_TRUE(front.ok()) << front.status();
  const auto worker = MappedSegment::Map(front->fd(), MappedSegment::Access::kReadWrite);
  ASSERT_TRUE(worker.ok()) << worker.status();
  Fill(*worker->Write(kBytes - 100, 100), 9);
  std::array<std::byte, 100> copy{};
  ASSERT_TRUE(CopyFromShared(copy, *front, kBytes - 100).ok());
  EXPECT_EQ(copy[0], std::byte{9});
  EXPECT_EQ(copy[99], std::byte{9});
}

TEST(Segment, RangesThatLeaveTheSegmentAreRefused) {
  const auto front = ResponseSegment::Create(kBytes);
  ASSERT_TRUE(front.ok());
  const auto worker = MappedSegment::Map(front->fd(), MappedSegment::Access::kReadWrite);
  ASSERT_TRUE(worker.ok());
  std::array<std::byte, 64> copy{};
  EXPECT_TRUE(CopyFromShared(copy, *front, kBytes - 64).ok());
  EXPECT_TRUE(CopyFromShared({}, *front, kBytes).ok());
  for (const uint64_t offset :
       {kBytes - 63, kBytes, kBytes + 1, UINT64_MAX, UINT64_MAX - 63, uint64_t{1} << 63}) {
    EXPECT_FALSE(CopyFromShared(copy, *front, offset).ok()) << offset;
    EXPECT_FALSE(worker->Read(offset, 64).ok()) << offset;
    EXPECT_FALSE(worker->Write(offset, 64).ok()) << offset;
  }
  EXPECT_FALSE(worker->Read(0, ~0ull).ok());
}

TEST(Segment, ARequestSegmentCannotBeWrittenThroughItsDescriptor) {
  const auto front = RequestSegment::Create(kBytes);
  ASSERT_TRUE(front.ok());
  EXPECT_EQ(fcntl(front->fd(), F_GET_SEALS) & 0x1f,
            F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
  EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, front->fd(), 0), MAP_FAILED);
  void* readable = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, front->fd(), 0);
  ASSERT_NE(readable, MAP_FAILED);
  EXPECT_NE(mprotect(readable, kBytes, PROT_READ | PROT_WRITE), 0);
  munmap(readable, kBytes);
  EXPECT_EQ(pwrite(front->fd(), "x", 1, 0), -1);
  EXPECT_NE(fallocate(front->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  Fill(front->Bytes(0, 16), 1);  // The front's own mapping still writes.
}

TEST(Segment, NeitherKindCanBeResizedOrUnsealed) {
  const auto request = RequestSegment::Create(kBytes);
  const auto response = ResponseSegment::Create(kBytes);
  ASSERT_TRUE(request.ok() && response.ok());
  EXPECT_EQ(fcntl(response->fd(), F_GET_SEALS) & 0x1f, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
  for (const int fd : {request->fd(), response->fd()}) {
    EXPECT_NE(ftruncate(fd, 0), 0);
    EXPECT_NE(ftruncate(fd, 2 * kBytes), 0);
    EXPECT_NE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(Segment, AHoleReadsAsZerosAndNotAsASignal) {
  const auto front = ResponseSegment::Create(kBytes);
  ASSERT_TRUE(front.ok());
  ASSERT_EQ(fallocate(front->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kBytes), 0);
  std::vector<std::byte> copy(kBytes, std::byte{1});
  ASSERT_TRUE(CopyFromShared(copy, *front, 0).ok());
  EXPECT_EQ(copy, std::vector<std::byte>(kBytes));
}

TEST(Segment, SizesThatCannotBeAreRefused) {
  EXPECT_FALSE(RequestSegment::Create(0).ok());
  EXPECT_FALSE(ResponseSegment::Create(~0ull).ok());
  EXPECT_FALSE(ResponseSegment::Create(limits::kSegmentBytesMax + 1).ok());
}

TEST(Segment, WhatIsNoSegmentIsNotMapped) {
  EXPECT_FALSE(MappedSegment::Map(-1, MappedSegment::Access::kRead).ok());
  const base::UniqueFd empty(memfd_create("empty", MFD_CLOEXEC));
  EXPECT_FALSE(MappedSegment::Map(empty.get(), MappedSegment::Access::kRead).ok());
  const auto request = RequestSegment::Create(kBytes);
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(MappedSegment::Map(request->fd(), MappedSegment::Access::kReadWrite).ok());
}

}  // namespace
}  // namespace tensord::channel
