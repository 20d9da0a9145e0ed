// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace tensord::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// What a person sees: as much of a terminal as the console uses.
class Screen {
 public:
  void Take(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const char c = bytes[i];
      if (c == '\r') {
        column_ = 0;
      } else if (c == '\n') {
        if (++row_ == lines_.size()) lines_.emplace_back();
      } else if (c == '\x1b') {
        i = Obey(bytes, i + 2);
      } else {
        std::string& line = lines_[row_];
        if (line.size() <= column_) line.resize(column_ + 1, ' ');
        line[column_++] = c;
      }
    }
  }
  // The one that the cursor is in is the last, if nothing is below it.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  // "\x1b[2A": two up; "\x1b[J": clears from the cursor on.
  size_t Obey(std::string_view bytes, size_t at) {
    size_t number = 0;
    const char* const begin = bytes.data() + at;
    const auto end = std::from_chars(begin, bytes.data() + bytes.size(), number);
    if (*end.ptr == 'A') row_ -= std::min(number, row_);
    if (*end.ptr == 'J') {
      lines_.resize(row_ + 1);
      lines_[row_].resize(std::min(lines_[row_].size(), column_));
    }
    EXPECT_THAT("AJ", HasSubstr(std::string(1, *end.ptr)));
    return at + static_cast<size_t>(end.ptr - begin);
  }

  std::vector<std::string> lines_ = {""};
  size_t row_ = 0;
  size_t column_ = 0;
};

// A pseudoterminal of 30 columns.
class Terminal {
 public:
  explicit Terminal(unsigned short rows = 24) {
    int master = -1;
    int slave = -1;
    winsize size{.ws_row = rows, .ws_col = 30, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
    EXPECT_EQ(fcntl(master, F_SETFL, O_NONBLOCK), 0);
    master_ = base::UniqueFd(master);
    slave_ = base::UniqueFd(slave);
  }
  int fd() const { return slave_.get(); }
  Console::Setup setup(std::string_view name = "xterm") const {
    return {.out = fd(), .err = fd(), .terminal = name};
  }
  const std::string& bytes() {
    char part[4096];
    ssize_t got = 0;
    while ((got = read(master_.get(), part, sizeof(part))) > 0) {
      bytes_.append(part, static_cast<size_t>(got));
    }
    return bytes_;
  }
  std::vector<std::string> lines() {
    Screen screen;
    screen.Take(bytes());
    return screen.lines();
  }

 private:
  base::UniqueFd master_;
  base::UniqueFd slave_;
  std::string bytes_;
};

TEST(Console, ProgressIsOneLineARankBelowWhatScrolls) {
  Terminal terminal;
  Console console(terminal.setup());
  ASSERT_TRUE(console.rewrites(1));
  console.Progress(1, "worker/10", "1/9");
  console.Progress(1, "worker/2", "1/9");
  console.Line(2, "worker/2", "a warning");
  console.Progress(1, "worker/2", "2/9");
  console.Text(2, "of our own\n");
  console.Progress(1, "worker/10", "3/9");
  EXPECT_THAT(terminal.lines(), ElementsAre("[worker/2] a warning", "of our own", "[worker/2] 2/9",
                                            "[worker/10] 3/9"));
}

TEST(Console, ABarThatEndsBecomesALineAndTheOthersStay) {
  Terminal terminal;
  Console console(terminal.setup());
  console.Progress(1, "worker/0", "8/9");
  console.Progress(2, "worker/1", "7/9");
  console.Line(1, "worker/1", "said on 1");
  console.Line(1, "worker/0", "9/9 done");
  EXPECT_THAT(terminal.lines(),
              ElementsAre("[worker/1] said on 1", "[worker/0] 9/9 done", "[worker/1] 7/9"));
}

TEST(Console, AtTheEndNoProgressIsLeft) {
  Terminal terminal;
  Console console(terminal.setup());
  console.Progress(1, "worker/0", "8/9");
  console.Progress(1, "worker/1", "8/9");
  console.Line(1, "worker/0", "ended");
  console.Progress(1, "worker/1", "");
  EXPECT_THAT(terminal.lines(), ElementsAre("[worker/0] ended", ""));
  console.Progress(1, "worker/1", "9/9");
  console.Flush(true);
  EXPECT_THAT(terminal.lines(), ElementsAre("[worker/0] ended", ""));
}

TEST(Console, ProgressIsCutToTheTerminal) {
  Terminal terminal(4);
  Console console(terminal.setup());
  console.Progress(1, "worker/0", "\x1b[32m" + std::string(50, '=') + "\x1b[0m");
  for (const char* rank : {"worker/1", "worker/2", "worker/3"}) console.Progress(1, rank, "1/9");
  EXPECT_THAT(terminal.lines(),
              ElementsAre("[worker/0] ==================", "[worker/1] 1/9", "(2 more)"));
}

TEST(Console, WhatCannotMoveItsCursorGetsALineForEachState) {
  Terminal terminal;
  for (const char* name : {"", "dumb"}) {
    Console console(terminal.setup(name));
    EXPECT_FALSE(console.rewrites(1));
    console.Progress(1, "worker/0", "1/9");
    console.Progress(1, "worker/0", "2/9");
    console.Progress(1, "worker/0", "");
  }
  EXPECT_THAT(terminal.lines(), ElementsAre("[worker/0] 1/9", "[worker/0] 2/9", "[worker/0] 1/9",
                                            "[worker/0] 2/9", ""));
  EXPECT_THAT(terminal.bytes(), Not(HasSubstr("\x1b")));
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC), 0);
  const base::UniqueFd reader(pipe_fds[0]);
  const base::UniqueFd writer(pipe_fds[1]);
  Console console({.out = writer.get(), .err = terminal.fd(), .terminal = "xterm"});
  EXPECT_FALSE(console.rewrites(1));
  EXPECT_TRUE(console.rewrites(2));
  console.Progress(1, "worker/0", "1/9");
  char bytes[64];
  ASSERT_EQ(read(reader.get(), bytes, sizeof(bytes)), 15);
  EXPECT_EQ(std::string_view(bytes, 15), "[worker/0] 1/9\n");
}

TEST(Console, ColoursAreKeptForTerminalsUnlessUnwanted) {
  for (const bool colours : {true, false}) {
    Terminal terminal;
    Console::Setup setup = terminal.setup();
    setup.colours = colours;
    Console(setup).Line(1, "worker/0", "\x1b[31mred\x1b[0m");
    EXPECT_EQ(terminal.bytes().find("\x1b[31m") != std::string::npos, colours);
  }
}

TEST(Fitted, CountsColumnsNotBytesAndDropsWhatMovesTheCursor) {
  EXPECT_EQ(Fitted("abc", 2), "ab");
  EXPECT_EQ(Fitted("a\tb\x7f", 9), "a b ");
  EXPECT_EQ(Fitted("━━━", 2), "━━");
  EXPECT_EQ(Fitted("訓練中", 5), "訓練");
  EXPECT_EQ(Fitted("a\xc2\x9b"
                   "2J\x9b",
                   9),
            "a2J");
  EXPECT_EQ(Fitted("a\xe2\x94", 9), "a\xe2\x94") << "cut in the middle: it is as it came";
}

}  // namespace
}  // namespace tensord::train
