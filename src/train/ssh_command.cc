// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "train/limits.h"
#include "train/schedulers.h"
#include "train/ssh.h"

namespace tensord::train {
namespace {

constexpr std::array<std::string_view, 4> kNamesAlong = {"PATH", "VIRTUAL_ENV", "PYTHONPATH",
                                                         "LD_LIBRARY_PATH"};
constexpr std::array<std::string_view, 5> kBeginsAlong = {"TF_", "KERAS_", "NCCL_", "XLA_", "OMP_"};

std::vector<std::string> Ssh(const SshSetup& setup, int node, std::string command) {
  std::vector<std::string> all = {"ssh", "-o", "BatchMode=yes"};  // Asks nobody for a password.
  all.insert(all.end(), setup.options.begin(), setup.options.end());
  all.insert(all.end(), {"--", setup.hosts[static_cast<size_t>(node)], std::move(command)});
  return all;
}

std::string Go(const SshSetup& setup) { return base::Cat("cd ", ShellWord(setup.folder), " && "); }

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseHosts(std::string_view text) {
  std::vector<std::string> hosts = ExpandHostList(text);
  const auto wrong = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        base::Cat("--hosts is a list as in a,b or node[01-04], not \"", text, "\": ", why));
  };
  if (hosts.empty()) return wrong("no host is in it");
  if (hosts.size() > static_cast<size_t>(limits::kNodesMax)) return wrong("too many hosts");
  for (const std::string& host : hosts) {
    if (host.empty() || host.front() == '-') return wrong("a host begins with a letter or digit");
    if (std::count(hosts.begin(), hosts.end(), host) > 1) {
      return wrong(base::Cat(host, " is named twice; --nproc-per-node gives it more ranks"));
    }
  }
  return hosts;
}

std::string ShellWord(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:=@%+,").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

bool GoesAlong(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return std::find(kNamesAlong.begin(), kNamesAlong.end(), name) != kNamesAlong.end() ||
         std::any_of(kBeginsAlong.begin(), kBeginsAlong.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

std::vector<std::string> AgentCommand(const SshSetup& setup, int node) {
  std::string command = base::Cat(Go(setup), "exec env");
  for (const std::string& variable : setup.environment) {
    command += base::Cat(" ", ShellWord(variable));
  }
  command +=
      base::Cat(" ", ShellWord(setup.program), " train --from-ssh --nnodes ", setup.hosts.size(),
                " --node-rank ", node, " --rdzv ", ShellWord(setup.meeting));
  for (const std::string& argument : setup.arguments) {
    command += base::Cat(" ", ShellWord(argument));
  }
  command += " --";
  for (const std::string& argument : setup.script) {
    command += base::Cat(" ", ShellWord(argument));
  }
  return Ssh(setup, node, std::move(command));
}

std::vector<std::string> CheckCommand(const SshSetup& setup, int node) {
  return Ssh(setup, node, base::Cat(Go(setup), ShellWord(setup.program), " train --version"));
}

}  // namespace tensord::train
