// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "train/messages.h"

// The leader's decisions about a job: who takes part, when ranks start, which failure counts, when
// to start again, when it is over. It does nothing itself.
namespace tensord::train {

struct Policy {
  Mode mode = Mode::kMultiWorker;
  int nodes_min = 1;
  int nodes_max = 1;
  int parameter_servers = 0;
  int restarts_max = 0;
  bool restart_on_any = true;     // Else only after signals and codes from 128 on.
  bool success_on_chief = false;  // Else when all ended well.
  bool check_only = false;
  std::string run_id = {};
  absl::Duration grace = absl::Seconds(10);
  absl::Duration join_wait = absl::Minutes(10);
  absl::Duration healthy_after = absl::Minutes(10);  // Then earlier failures are forgotten.
};

using NodeId = int;  // Of a connection; 0 is the leader's own machine.

// ---- What Job is told ---------------------------------------------------------------------------

struct FromNode {
  NodeId node = 0;
  Report report = {};
  int64_t clock_ms = 0;  // The leader's calendar when it came.
};
struct NodeLost {
  NodeId node = 0;
  std::string why = {};
};
struct StopRequested {
  int signal = 0;
};
struct TimePassed {};
using Event = std::variant<FromNode, NodeLost, StopRequested, TimePassed>;

// ---- What it wants done -------------------------------------------------------------------------

struct Tell {
  NodeId node = 0;
  Command command = {};
};
enum class Severity { kInfo, kWarning, kError };
struct Say {
  Severity severity = Severity::kInfo;
  std::string text = {};
};
// Many lines, as they are.
struct Print {
  std::string text = {};
};
struct End {
  int code = 0;
};
using Action = std::variant<Tell, Say, Print, End>;

// Threads: one at a time.
class Job {
 public:
  // REQUIRES: 1 <= nodes_min <= nodes_max.
  Job(Policy policy, absl::Time now);

  std::vector<Action> On(const Event& event, absl::Time now);
  // When to send TimePassed.
  absl::Time Wake() const { return wake_; }

 private:
  enum class Phase {
    kGathering,
    kPreparing,
    kProbing,
    kRunning,
    kDumping,
    kStopping,
    kBackoff,
    kOver
  };
  struct Node {
    NodeId id = 0;
    Joined joined = {};
    bool in_generation = false;
    bool answered = false;  // The question of the phase: ports, or the matrix.
    bool gone = true;       // No rank of it is left.
    int first_rank = 0;
    std::vector<std::string> ports = {};
    std::vector<std::string> marks = {};
  };

  void Handle(NodeId node, const Joined& joined, int64_t clock_ms);
  void Handle(NodeId node, const Ready& ready);
  void Handle(NodeId node, const Probed& probed);
  void Handle(NodeId node, const RankEnded& ended);
  void Handle(NodeId node, const RanksGone& gone);
  void Handle(NodeId node, const RankStuck& stuck);
  void Handle(NodeId, const StopWanted& wanted) { Stop(wanted.signal); }
  void Lose(const NodeLost& lost);
  void Stop(int signal);
  void OnTime();

  void MaybePrepare();
  void Gather(absl::Duration wait);
  void AfterPorts();
  void CheckMarks();
  void StartAll();
  void StopAll(int signal, absl::Duration grace);
  void Failed(const RankEnd& end);
  // All ranks of the generation are gone.
  void Decide();
  void DecideAfterFailure(const RankEnd* cause);
  void Restart(const std::string& why, bool counts, int code);
  void Finish(int code, const std::string& words);

  void ToAll(const Command& command);
  void SayInfo(std::string text) { actions_.emplace_back(Say{Severity::kInfo, std::move(text)}); }
  void SayError(std::string text) { actions_.emplace_back(Say{Severity::kError, std::move(text)}); }
  bool AllAnswered() const;
  bool AllGone() const;
  int ranks() const { return static_cast<int>(tasks_.size()); }
  std::string NameOf(int rank) const;
  Node* Find(NodeId id);
  // Those of the generation, in the order of their ranks.
  std::vector<Node*> Members();

  const Policy policy_;
  absl::Time now_;
  absl::Time wake_ = absl::InfiniteFuture();
  std::vector<Action> actions_;

  Phase phase_ = Phase::kGathering;
  std::vector<Node> nodes_;  // In the order of their ranks; the leader's own first.
  int generation_ = 0;
  int restarts_ = 0;          // Of the run, all of them.
  int counted_restarts_ = 0;  // Those that --max-restarts counts.
  int stolen_ports_ = 0;      // In a row.
  int failures_in_row_ = 0;   // For the back-off.
  absl::Time started_;
  std::vector<TaskId> tasks_;
  std::vector<std::string> addresses_;
  std::map<int, RankEnd> ends_;
  std::string stuck_;  // Why, when a rank hangs.
  std::string lost_;   // Which machine, when one is gone.
  int stop_signal_ = 0;
  int stops_ = 0;
};

}  // namespace tensord::train
