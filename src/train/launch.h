// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "train/agent.h"
#include "train/job.h"
#include "train/secure.h"
#include "train/yield.h"

namespace tensord::train {

// All that `tensord train` was told, settled.
struct Launch {
  AgentSetup agent = {};
  Policy policy = {};
  int node_rank = -1;
  std::string address = {};  // Where other machines reach our ranks; empty: find out.
  bool leader = true;        // We decide for all.
  std::string meeting = {};  // "host:port" of the leader; empty with one machine.
  std::string token = {};    // Shared by all agents; empty: none.
  SecureFiles secure = {};   // Not given: the meeting is in the clear.
  YieldSetup yield = {};
  NodeFacts facts = {};      // Of this machine.
  bool watch_input = false;  // The end of standard input means stop: who started us is gone.
};

// Meets, runs the job to its end and gives the exit code: 0, the first failing rank's own code (128
// and its number after a signal), 128 and the signal when told to stop, 1 when nothing could run.
// REQUIRES: called by Guarded.
int Run(Launch launch);

}  // namespace tensord::train
