// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "loop/event_loop.h"

namespace tensord::fleet {

// Reads one of a worker's log pipes and hands on its lines: at most kLogLineBytesMax each and
// kLogLinesPerSecondMax a second; what is more is counted and said. After kLogBytesPerSecondMax it
// stops reading for the rest of the second: a flood then blocks its writer, not this loop. The text
// is a model's, so the reader of the lines escapes it.
// Threads: one loop.
class WorkerLog {
 public:
  using OnLine = std::function<void(std::string_view line)>;

  WorkerLog(loop::EventLoop& loop, base::UniqueFd pipe, OnLine line);
  ~WorkerLog();

  // The writer has ended: takes what the pipe still holds, its last words.
  void Finish();

 private:
  void OnReadable();
  bool Read();
  void NextSecond();
  void Take(std::string_view bytes);
  void Say(std::string_view line);
  void SayDropped();

  loop::EventLoop& loop_;
  const base::UniqueFd pipe_;
  const OnLine line_;
  loop::EventLoop::Watch watch_;
  std::string part_;  // Of a line that has not ended yet.
  loop::TimerId pause_ = 0;
  absl::Time second_;
  int lines_ = 0;
  size_t bytes_ = 0;
  int dropped_ = 0;
};

}  // namespace tensord::fleet
