// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/train_hosts.h"

#include <array>
#include <filesystem>
#include <random>

#include "base/status_macros.h"
#include "base/text.h"
#include "supervisor/spawn.h"

namespace tensord::cli {
namespace {

// Each has one value.
constexpr std::array<std::string_view, 5> kPlaces = {"--hosts", "--ssh-config", "--rdzv",
                                                     "--rdzv-endpoint", "--token-file"};
constexpr size_t kTokenLength = 32;

std::string RandomWord(size_t length) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string word;
  while (word.size() < length) word.push_back(kDigits[random() % kDigits.size()]);
  return word;
}

// The first host as the others reach it, without the name of a user.
std::string Meeting(const TrainOptions& options, const std::string& first) {
  std::string meeting = options.meeting;
  if (meeting.empty()) meeting = first.substr(first.find('@') + 1);
  return meeting.find(':') == std::string::npos ? base::Cat(meeting, ":", kMeetingPort) : meeting;
}

}  // namespace

std::string NewRunId() { return RandomWord(8); }

Arguments WithoutPlaces(const Arguments& own) {
  Arguments left;
  for (size_t i = 0; i < own.size(); ++i) {
    const std::string& word = own[i];
    bool place = false;
    for (const std::string_view name : kPlaces) {
      place = place || word == name || word.starts_with(base::Cat(name, "="));
      if (word == name) ++i;  // Its value.
    }
    if (!place) left.push_back(word);
  }
  return left;
}

absl::StatusOr<train::SshSetup> SettleHosts(const TrainOptions& options, const Arguments& own,
                                            const Arguments& program) {
  if (options.standalone || !options.nodes.empty() || options.node_rank >= 0 ||
      !options.address.empty() || options.from_ssh || options.print_env) {
    return absl::InvalidArgumentError(
        "--hosts says which machines and in which order: leave --standalone, --nnodes, "
        "--node-rank, --address and --print-env out");
  }
  train::SshSetup setup;
  ASSIGN_OR_RETURN(setup.hosts, train::ParseHosts(options.hosts));
  if (setup.hosts.size() < 2) {
    return absl::InvalidArgumentError("--hosts is for two machines and more");
  }
  if (!options.ssh_config.empty()) setup.options = {"-F", options.ssh_config};
  std::error_code error;
  setup.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  setup.folder = std::filesystem::current_path(error).string();
  setup.own_environment = supervisor::Environment();
  for (const std::string& variable : setup.own_environment) {
    if (train::GoesAlong(variable)) setup.environment.push_back(variable);
  }
  setup.arguments = WithoutPlaces(own);
  // One name for the logs of all machines.
  if (options.run_id.empty()) {
    setup.arguments.insert(setup.arguments.end(), {"--run-id", NewRunId()});
  }
  setup.script = program;
  setup.meeting = Meeting(options, setup.hosts.front());
  setup.token = RandomWord(kTokenLength);
  return setup;
}

}  // namespace tensord::cli
