// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/line_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/text.h"

namespace tensord::obs {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// A pipe that holds 4 KiB and is read when the test wants.
class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reading_.Reset(ends[0]);
    writing_.Reset(ends[1]);
    fcntl(writing_.get(), F_SETPIPE_SZ, 4096);
    writer_ = LineWriter::Start(writing_.get(),
                                [](uint64_t lines) { return base::Cat("lost ", lines, "\n"); });
  }
  // Reads until the text ends so.
  std::string ReadUntil(std::string_view end) {
    std::string text;
    char part[4096];
    while (!text.ends_with(end)) {
      const ssize_t got = read(reading_.get(), part, sizeof(part));
      if (got <= 0) break;
      text.append(part, static_cast<size_t>(got));
    }
    return text;
  }

  base::UniqueFd reading_;
  base::UniqueFd writing_;
  std::unique_ptr<LineWriter> writer_;
};

TEST_F(LineWriterTest, WritesLinesInTheirOrder) {
  for (int i = 0; i < 100; ++i) writer_->Write(base::Cat("line ", i, "\n"));
  EXPECT_TRUE(writer_->Flush(absl::Seconds(30)));
  const std::string text = ReadUntil("line 99\n");
  EXPECT_THAT(text, StartsWith("line 0\nline 1\nline 2\n"));
  EXPECT_THAT(text, EndsWith("line 98\nline 99\n"));
}

TEST_F(LineWriterTest, AReaderThatReadsNothingHoldsNobodyUp) {
  const std::string filler(100, '.');
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) writer_->Write(base::Cat(i, filler, "\n"));
  EXPECT_FALSE(writer_->Flush(absl::Milliseconds(10)));
  // Once it reads, it gets the first ones, the last ones, and how many are missing.
  const std::string text = ReadUntil(base::Cat(kLines - 1, filler, "\n"));
  EXPECT_THAT(text, StartsWith(base::Cat("0", filler, "\n1", filler, "\n")));
  const size_t lost_at = text.find("lost ");
  ASSERT_NE(lost_at, std::string::npos);
  const int lost = std::stoi(text.substr(lost_at + 5));
  const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(lines - 1 + lost, kLines);
  EXPECT_LE(lines, static_cast<int>(kLinesWaitingMax) + 100);
  EXPECT_TRUE(writer_->Flush(absl::Seconds(30)));
}

// The signals that are blocked, as the kernel says it, of a thread of this process.
uint64_t Blocked(const std::filesystem::path& thread) {
  std::ifstream status(thread / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  return 0;
}

TEST_F(LineWriterTest, ItsThreadTakesNoSignals) {
  int without = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const uint64_t blocked = Blocked(thread.path());
    const auto blocks = [blocked](int signal) { return (blocked >> (signal - 1) & 1) == 1; };
    if (blocks(SIGTERM) && blocks(SIGCHLD) && blocks(SIGHUP)) ++without;
  }
  EXPECT_EQ(without, 1);
  EXPECT_EQ(Blocked("/proc/thread-self"), 0);
}

}  // namespace
}  // namespace tensord::obs
