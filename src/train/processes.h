// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "train/pinning.h"

// Starting processes and seeing to it that none is left.
namespace tensord::train {

// A started rank and our ends of what it writes.
struct Spawned {
  pid_t pid = 0;
  base::UniqueFd out = {}, err = {};
  base::UniqueFd in = {};     // Valid when it was asked for.
  base::UniqueFd beats = {};  // Valid when it was asked for.
};

struct ToSpawn {
  std::vector<std::string> arguments = {};  // [0] is looked for in PATH; no shell.
  std::vector<std::string> environment = {};
  Place place = {};
  base::UniqueFd beats = {};  // Kept open in the child under its number.
  std::string group = {};     // A control group to be in; empty: ours.
  bool input = false;         // A pipe to write to; else it reads nothing, /dev/null.
};

// A pipe; both ends close-on-exec, the reading one non-blocking.
absl::StatusOr<std::pair<base::UniqueFd, base::UniqueFd>> MakePipe();

// Blocks the signals by which a launcher is told something (a child's end, to stop, that its guard
// is gone), and gives the descriptor, non-blocking, from which they are read instead.
absl::StatusOr<base::UniqueFd> TakeSignals();

// A child in a process group of its own that dies with us. A program that
// cannot be exec'd says so on its standard error and ends with 127.
// REQUIRES: one thread; every other descriptor is close-on-exec.
absl::StatusOr<Spawned> Spawn(const ToSpawn& what);

// Runs a program to its end and gives what it wrote; INTERNAL when it fails or takes longer.
absl::StatusOr<std::string> RunAndRead(const ToSpawn& what, absl::Duration longest);

// Moves this process, and all it starts, into a network of its own where only loopback is.
// FAILED_PRECONDITION without the right to.
absl::Status Isolate();

// All that descend from `root`, from parents by pid. Pure.
std::set<pid_t> DescendantsIn(const std::map<pid_t, pid_t>& parents, pid_t root);
// Those of this process, zombies left out.
std::set<pid_t> Descendants();
// Kills and reaps all descendants until none is left. With us as subreaper nothing escapes, not
// even what left its process group or lost its parent. Blocks; at most a few seconds.
void KillDescendants();

}  // namespace tensord::train
