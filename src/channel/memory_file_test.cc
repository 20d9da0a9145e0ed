// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace tensord::channel {
namespace {

TEST(SealBytes, GivesTheSameBytesAgainAndAgainWhereverTheOffsetStands) {
  const std::string text(100'000, 'x');
  const absl::StatusOr<base::UniqueFd> fd = SealBytes("test", text);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(lseek(fd->get(), 7, SEEK_SET), 7);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ReadSealed(fd->get(), text.size()).value(), text);
}

TEST(SealBytes, LetsNobodyChangeThem) {
  const absl::StatusOr<base::UniqueFd> fd = SealBytes("test", "text");
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_LT(pwrite(fd->get(), "T", 1, 0), 0);
  EXPECT_LT(ftruncate(fd->get(), 1), 0);
  EXPECT_EQ(mmap(nullptr, 4, PROT_WRITE, MAP_SHARED, fd->get(), 0), MAP_FAILED);
}

TEST(ReadSealed, RefusesWhatCanStillChangeIsTooLargeOrIsNoMemory) {
  const base::UniqueFd open_memory(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSealed(open_memory.get(), 10).status()));
  const base::UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSealed(file.get(), 10).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSealed(-1, 10).status()));
  const absl::StatusOr<base::UniqueFd> large = SealBytes("test", "01234567890");
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSealed(large->get(), 10).status()));
}

}  // namespace
}  // namespace tensord::channel
