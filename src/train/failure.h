// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/messages.h"

// Why a job failed: what its ranks said, which of them was first, what helps. Pure.
namespace tensord::train {

// Reads a rank's lines as they come and keeps what a summary needs.
class RankWords {
 public:
  // One line of output, without its newline; `since_ms` from the start of the generation.
  void Add(std::string_view line, int64_t since_ms);

  Trouble trouble() const { return trouble_; }
  int64_t trouble_ms() const { return trouble_ms_; }
  const std::string& advice() const { return advice_; }
  bool port_stolen() const { return port_stolen_; }
  // The last traceback, or else the last lines.
  std::string Words() const;

 private:
  void AddToTraceback(std::string_view line, int64_t since_ms);

  Trouble trouble_ = Trouble::kNone;
  int64_t trouble_ms_ = 0;
  std::string advice_;
  bool port_stolen_ = false;
  bool in_traceback_ = false;
  bool traceback_open_ = false;  // Begun, its last line not yet seen.
  bool in_graph_error_ = false;  // Its reason, which decides what it is, is to come.
  Trouble before_graph_error_ = Trouble::kNone;  // What it is if it proves to be an echo.
  int64_t traceback_ms_ = 0;
  std::string traceback_;
  std::vector<std::string> tail_;
};

// Whether an error's text says only that another rank is gone.
bool IsEcho(std::string_view line);
// What to do about a known message; empty for others.
std::string_view AdviceFor(std::string_view line);

// The rank that failed first, -1 when none did. Who ended by itself, by an error of its own or a
// signal, comes first; then who just left; then errors told by ranks that had to be ended, since a
// script may have caught them; then echoes. Among equals the earlier one.
int FindCause(const std::vector<RankEnd>& ends);

// "exit 1", "signal 9 (SIGKILL)"
std::string HowItEnded(const RankEnd& end);
// The text for people, many lines; `tasks` by rank.
std::string FailureSummary(const std::vector<RankEnd>& ends, const std::vector<TaskId>& tasks);

}  // namespace tensord::train
