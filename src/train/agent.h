// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "loop/event_loop.h"
#include "train/environment.h"
#include "train/messages.h"
#include "train/output.h"
#include "train/pinning.h"
#include "train/ports.h"
#include "train/watch.h"
#include "train/yield.h"

namespace tensord::train {

class RankProcess;

// What an agent needs to know to run ranks.
struct AgentSetup {
  std::vector<std::string> program = {};
  std::vector<std::string> environment = {};
  int ranks = 1;
  std::vector<std::string> gpus = {};  // Of this machine, those we may use.
  int cpus = 1;
  std::vector<Place> places = {};  // Where each rank runs; empty: none is pinned.
  std::string interface = {};      // Network interface to the other machines; empty: unknown.
  Help help = {};
  WatchLimits watch = {};
  std::string log_dir = {};
  std::string group = {};           // The control group of ranks; may be empty.
  std::string checkpoint_dir = {};  // Where to look for the others' marks; may be empty.
};

// Runs the ranks of one machine as the leader commands, and reports what becomes of them.
// Threads: the loop's. Owns: processes, their log files, the ports.
class Agent {
 public:
  using Reporter = std::function<void(const Report&)>;

  Agent(AgentSetup setup, loop::EventLoop* loop, Console* console);
  ~Agent();

  void SetReporter(Reporter reporter) { report_ = std::move(reporter); }
  // All but Finish.
  void Obey(const Command& command);
  // Until kAll. Pauses come in slices that the ranks' heartbeats survive.
  void MakeRoom(Share share);
  // After SIGCHLD.
  void Reap();
  // Ends every process at once and forgets the generation; the leader is gone.
  void Abandon();
  bool running() const { return !ranks_.empty(); }

 private:
  void Do(const Prepare& prepare);
  void Do(const Probe& probe);
  void Do(const StartRanks& start);
  void Do(const StopRanks& stop);
  void Do(const DumpStacks&);
  void Do(const Finish&) {}

  absl::Status StartOne(const StartRanks& start, const std::vector<TaskId>& tasks, int local_rank);
  void Ended(RankProcess* rank, int status);
  void KillAll();
  // Reports RanksGone as soon as no process is left.
  void MaybeGone();
  void LookAtRanks();
  void LookForStuck(const std::vector<RankView>& views);
  void Pulse();
  void Resume();
  void Arm(absl::Duration wait, loop::TimerId* timer, loop::Task task);

  const AgentSetup setup_;
  loop::EventLoop* const loop_;
  Console* const console_;
  Reporter report_;

  int generation_ = 0;
  absl::Time started_;
  std::vector<ReservedPort> ports_;
  std::map<pid_t, std::unique_ptr<RankProcess>> ranks_;  // Those that run.
  bool stopping_ = false;
  bool killed_ = false;  // The grace is over.
  bool gone_reported_ = true;
  bool stuck_reported_ = false;
  bool silence_said_ = false;  // Of ranks that may be at work.
  absl::Time last_shown_ = absl::InfinitePast();
  loop::TimerId look_timer_ = 0;
  loop::TimerId grace_timer_ = 0;
  loop::TimerId kill_timer_ = 0;
  loop::TimerId pulse_timer_ = 0;
  bool pulses_ = false;  // Ranks are stopped and let go in turn …
  bool paused_ = false;  // … and are stopped at this moment.
};

}  // namespace tensord::train
