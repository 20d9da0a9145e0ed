// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/worker_log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/limits.h"
#include "fleet/testing/worker_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WorkerLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_ = *loop::EventLoop::Create(clock_);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    writer_.Reset(ends[1]);
    log_ =
        std::make_unique<WorkerLog>(*loop_, base::UniqueFd(ends[0]),
                                    [this](std::string_view line) { lines_.emplace_back(line); });
  }

  // How much of it the pipe took.
  size_t Write(std::string_view text) {
    const ssize_t size = write(writer_.get(), text.data(), text.size());
    return size < 0 ? 0 : static_cast<size_t>(size);
  }
  void Turn() {
    for (int i = 0; i < 8; ++i) loop_->RunOnce(clock_.Now());
  }

  HandClock clock_;
  std::unique_ptr<loop::EventLoop> loop_;
  std::unique_ptr<WorkerLog> log_;
  base::UniqueFd writer_;
  std::vector<std::string> lines_;
};

TEST_F(WorkerLogTest, GivesWholeLines) {
  Write("a li");
  Turn();
  EXPECT_THAT(lines_, IsEmpty());
  Write("ne\n\nand another\n");
  Turn();
  EXPECT_THAT(lines_, ElementsAre("a line", "and another"));
}

TEST_F(WorkerLogTest, CutsLongLines) {
  Write(std::string(3 * limits::kLogLineBytesMax, 'x') + "\nnext\n");
  Turn();
  EXPECT_THAT(lines_, ElementsAre(std::string(limits::kLogLineBytesMax, 'x'), "next"));
}

TEST_F(WorkerLogTest, CountsTheLinesThatAreTooMany) {
  std::string text;
  for (int i = 0; i < limits::kLogLinesPerSecondMax + 30; ++i) text += "x\n";
  Write(text);
  Turn();
  EXPECT_THAT(lines_, SizeIs(limits::kLogLinesPerSecondMax));
  clock_.Advance(absl::Seconds(1));
  Write("later\n");
  Turn();
  EXPECT_THAT(lines_, SizeIs(limits::kLogLinesPerSecondMax + 2));
  EXPECT_EQ(lines_[lines_.size() - 2], "30 log lines were dropped: too many a second");
  EXPECT_EQ(lines_.back(), "later");
}

TEST_F(WorkerLogTest, AFloodBlocksItsWriterUntilTheNextSecond) {
  const std::string chunk(4096, 'x');
  size_t written = 0;
  for (int i = 0; i < 10'000; ++i) {
    written += Write(chunk);
    Turn();
  }
  EXPECT_GE(written, limits::kLogBytesPerSecondMax);
  EXPECT_LE(written, limits::kLogBytesPerSecondMax + 256 * 1024);
  EXPECT_EQ(Write(chunk), 0u);
  clock_.Advance(absl::Seconds(1));
  Turn();
  EXPECT_GT(Write(chunk), 0u);
}

TEST_F(WorkerLogTest, FinishTakesWhatThePipeStillHolds) {
  Write("first\nlast words");
  log_->Finish();
  EXPECT_THAT(lines_, ElementsAre("first", "last words"));
}

TEST_F(WorkerLogTest, AClosedPipeGivesItsLastLineOnce) {
  Write("last words");
  writer_.Reset();
  Turn();
  log_->Finish();
  EXPECT_THAT(lines_, ElementsAre("last words"));
}

}  // namespace
}  // namespace tensord::fleet
