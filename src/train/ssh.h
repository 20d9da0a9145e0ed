// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// One command that starts the agents of several machines by SSH.
namespace tensord::train {

struct SshSetup {
  std::vector<std::string> hosts = {};            // As ssh takes them; the first leads.
  std::vector<std::string> options = {};          // For ssh itself, such as -F and a file.
  std::string program = {};                       // tensord, at the same place on every machine …
  std::string folder = {};                        // … as the folder to work in.
  std::vector<std::string> environment = {};      // What goes along, "NAME=value".
  std::vector<std::string> own_environment = {};  // Of ssh here.
  std::vector<std::string> arguments = {};  // `tensord train`'s, but for what places a machine.
  std::vector<std::string> script = {};     // The program and its arguments.
  std::string meeting = {};                 // HOST:PORT of the first.
  std::string token = {};                   // Goes over standard input: `ps` shows it to nobody.
};

// Hosts as in "a,b" or, as Slurm writes them, "node[01-04]"; INVALID_ARGUMENT for two of a name.
absl::StatusOr<std::vector<std::string>> ParseHosts(std::string_view text);

// One word for the other side's shell, whatever is in it. There is no shell on ours.
std::string ShellWord(std::string_view text);

// Whether a variable of ours goes along: those of TensorFlow, its libraries and Python.
bool GoesAlong(std::string_view variable);

// What ssh runs: the agent of machine `node`, and the look whether it can be started there.
std::vector<std::string> AgentCommand(const SshSetup& setup, int node);
std::vector<std::string> CheckCommand(const SshSetup& setup, int node);

// Looks at every machine, then runs all agents and shows what they say, until the first machine's
// ends; its exit code. 1 when a machine cannot be used, which includes another `version` there.
// REQUIRES: called by Guarded.
int RunOverSsh(const SshSetup& setup, const std::string& version);

}  // namespace tensord::train
