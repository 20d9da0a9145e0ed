// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <variant>
#include <vector>

#include "train/cluster_spec.h"

// What the leader of a job and its agents say to each other: plain values. An agent runs the ranks
// of one machine; the leader, which lives in the first agent's process, decides for all.
namespace tensord::train {

// ---- An agent to the leader ---------------------------------------------------------------------

// What a machine is and has, for the comparison before the start.
struct NodeFacts {
  std::string host = {};  // Its own name for itself.
  std::string python = {}, tensorflow = {}, keras = {}, cuda = {};
  std::string script_hash = {};
  int gpus = 0;
  int cpus = 0;
  int open_files = 0;                 // The limit.
  int64_t clock_ms = 0;               // Its calendar when it wrote this.
  int64_t disk_free_bytes = -1;       // Where checkpoints go; -1: not asked.
  std::string checkpoint_mark = {};   // Name of the file that it put there.
  std::string checkpoint_error = {};  // Why it could not.

  bool operator==(const NodeFacts&) const = default;
};

struct Joined {
  std::string address = {};  // Where the others reach its ranks.
  int node_rank = -1;        // Its wish; -1: none.
  int ranks = 1;
  NodeFacts facts = {};

  bool operator==(const Joined&) const = default;
};

// Ports are reserved, one a rank.
struct Ready {
  int generation = 0;
  std::vector<std::string> ports = {};
  std::string error = {};  // Not empty: they are not.

  bool operator==(const Ready&) const = default;
};

struct Probed {
  int generation = 0;
  std::vector<std::string> unreachable = {};  // "host:port: why"
  std::vector<std::string> marks = {};  // Files of the others that it sees in the shared folder.

  bool operator==(const Probed&) const = default;
};

enum class Trouble {
  kNone,
  kOwn,   // It raised something of its own.
  kEcho,  // It noticed that another one is gone.
};

// How a rank ended and what it said of it.
struct RankEnd {
  int rank = 0;
  int code = 0;
  int signal = 0;        // Not 0: it ended by it.
  bool by_us = false;    // After we told it to stop.
  bool dumped = false;   // By SIGKILL of ours, or after its grace.
  int64_t since_ms = 0;  // From the start of its generation to its first trouble, or its end.
  Trouble trouble = Trouble::kNone;
  std::string words = {};   // Its traceback, or its last lines.
  std::string advice = {};  // For a message that is known.
  bool port_stolen = false;

  bool ok() const { return code == 0 && signal == 0; }
  bool operator==(const RankEnd&) const = default;
};

struct RankEnded {
  int generation = 0;
  RankEnd end = {};

  bool operator==(const RankEnded&) const = default;
};

// No process of this generation is left on the machine.
struct RanksGone {
  int generation = 0;

  bool operator==(const RanksGone&) const = default;
};

struct RankStuck {
  int generation = 0;
  int rank = 0;
  std::string why = {};
  bool perhaps_at_work = false;  // To be said, not to be ended.

  bool operator==(const RankStuck&) const = default;
};

// Its machine is told to stop, so all are.
struct StopWanted {
  int signal = 0;

  bool operator==(const StopWanted&) const = default;
};

using Report = std::variant<Joined, Ready, Probed, RankEnded, RanksGone, RankStuck, StopWanted>;

// ---- The leader to an agent ---------------------------------------------------------------------

struct Prepare {
  int generation = 0;

  bool operator==(const Prepare&) const = default;
};

// Connect to each of these; the agents of their machines hold the ports open.
struct Probe {
  int generation = 0;
  std::vector<std::string> addresses = {};

  bool operator==(const Probe&) const = default;
};

struct StartRanks {
  int generation = 0;
  int restarts = 0;
  int first_rank = 0;
  int node = 0;
  int nodes = 1;
  Mode mode = Mode::kMultiWorker;
  int parameter_servers = 0;
  std::string run_id = {};
  std::vector<std::string> addresses = {};  // One a rank of the whole job.

  bool operator==(const StartRanks&) const = default;
};

// Sends `signal` (0: none) and, after the grace, kills all that is left.
struct StopRanks {
  int generation = 0;
  int signal = 0;
  int64_t grace_ms = 0;

  bool operator==(const StopRanks&) const = default;
};

struct DumpStacks {
  int generation = 0;

  bool operator==(const DumpStacks&) const = default;
};

// The job is over; the agent ends with this code.
struct Finish {
  int code = 0;
  std::string words = {};  // For the agent's log; may be empty.

  bool operator==(const Finish&) const = default;
};

using Command = std::variant<Prepare, Probe, StartRanks, StopRanks, DumpStacks, Finish>;

}  // namespace tensord::train
