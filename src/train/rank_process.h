// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>

#include "base/unique_fd.h"
#include "loop/event_loop.h"
#include "train/failure.h"
#include "train/output.h"
#include "train/processes.h"
#include "train/status.h"
#include "train/watch.h"

namespace tensord::train {

// One rank that runs: its pipes, its log file, what it said, how far it is.
// Threads: the loop's. The process itself is the agent's to end and to reap.
class RankProcess {
 public:
  struct Place {
    int rank = 0;
    std::string name = {};  // "worker/1"
    bool watched = true;
    bool alone = false;  // It waits for no other rank.
    std::string log_path = {};
  };
  RankProcess(Place place, Spawned spawned, loop::EventLoop* loop, Console* console);

  pid_t pid() const { return pid_; }
  const std::string& name() const { return place_.name; }
  const RankView& view() const { return view_; }
  // The injected help is up: it dumps stacks when told to.
  bool dumps_stacks() const { return helped_; }
  // REQUIRES: called again and again, for the rate.
  RankStatus Status();
  void SetStopped(bool stopped);
  // Shows the state of a progress bar that was redrawn; where that takes a line each time, only if
  // one is due.
  void ShowProgress(bool line_due);
  // Reads what is left in the pipes; the process has ended.
  void Drain();
  // What it came to; `status` from waitpid.
  RankEnd Finish(int status, bool stopping, bool killed);

 private:
  struct Stream {
    int as;  // 1 or 2
    base::UniqueFd pipe = {};
    LineCutter cutter;
    loop::EventLoop::Watch watch;
  };
  void Read(Stream* stream);
  void ReadBeats();
  void Beat(std::string_view line);
  void Take(int as, std::string_view line);
  void Log(std::string_view line);
  void LogFailed(std::string_view why);
  int64_t SinceStart() const {
    return absl::ToInt64Milliseconds(loop_->ClockNow() - view_.started);
  }

  const Place place_;
  const pid_t pid_;
  loop::EventLoop* const loop_;
  Console* const console_;
  base::UniqueFd log_;
  bool log_failed_ = false;
  RankWords words_;
  RankView view_;
  bool helped_ = false;
  RankStatus status_;  // As last told.
  StepRate rate_;
  Stream out_, err_, beats_;
};

}  // namespace tensord::train
