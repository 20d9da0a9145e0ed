// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/environment.h"

#include <algorithm>

#include "base/text.h"

namespace tensord::train {
namespace {

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += base::Cat(text.empty() ? "" : ",", part);
  return text;
}

void AddHelp(const Help& help, const std::vector<std::string>& inherited,
             std::vector<std::string>* variables) {
  if (!help.inject) return;
  const std::string_view path = ValueOf(inherited, "PYTHONPATH");
  variables->push_back(base::Cat("PYTHONPATH=", help.folder, path.empty() ? "" : ":", path));
  variables->push_back(base::Cat("TENSORD_TRAIN_REGISTER_MS=", help.register_ms));
  variables->push_back(base::Cat("TENSORD_TRAIN_HEARTBEAT_MS=", help.heartbeat_ms));
  variables->push_back(base::Cat("TENSORD_TRAIN_BEAT_FD=", help.beat_fd));
}

}  // namespace

std::string_view ValueOf(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment) {
    if (variable.size() > name.size() && variable.starts_with(name) &&
        variable[name.size()] == '=') {
      return std::string_view(variable).substr(name.size() + 1);
    }
  }
  return "";
}

std::vector<std::string> RankVariables(const Seat& seat, const Help& help,
                                       const std::vector<std::string>& inherited) {
  std::vector<std::string> variables = {
      base::Cat("RANK=", seat.rank),
      base::Cat("WORLD_SIZE=", seat.ranks),
      base::Cat("LOCAL_RANK=", seat.local_rank),
      base::Cat("LOCAL_WORLD_SIZE=", seat.local_ranks),
      base::Cat("NODE_RANK=", seat.node),
      base::Cat("NODE_COUNT=", seat.nodes),
      base::Cat("RESTART_COUNT=", seat.restarts),
      base::Cat("RUN_ID=", seat.run_id),
      base::Cat("TENSORD_TRAIN_TASK=", TaskName(seat.task)),
      base::Cat("TENSORD_TRAIN_GENERATION=", seat.generation),
  };
  if (!seat.tf_config.empty()) variables.push_back(base::Cat("TF_CONFIG=", seat.tf_config));
  const auto unless_given = [&](std::string_view name, std::string_view value) {
    if (ValueOf(inherited, name).empty()) variables.push_back(base::Cat(name, "=", value));
  };
  if (!seat.gpus.empty()) {
    variables.push_back(base::Cat("CUDA_VISIBLE_DEVICES=", Join(seat.gpus)));
    unless_given("CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // As the numbers above are meant.
    unless_given("TF_FORCE_GPU_ALLOW_GROWTH", "true");
    unless_given("NCCL_DEBUG", "WARN");
    // "=" asks for this very name; NCCL takes what begins with it otherwise.
    if (!seat.interface.empty()) {
      unless_given("NCCL_SOCKET_IFNAME", base::Cat("=", seat.interface));
    }
  }
  int threads = std::max(1, seat.cpus / std::max(1, seat.local_ranks));
  if (seat.pinned_cpus > 0) threads = std::min(threads, seat.pinned_cpus);
  unless_given("TF_NUM_INTRAOP_THREADS", base::Cat(threads));
  unless_given("OMP_NUM_THREADS", base::Cat(threads));
  // With one, a parameter server's first call never returns.
  const int least = seat.mode == Mode::kParameterServer ? 4 : 2;
  unless_given("TF_NUM_INTEROP_THREADS", base::Cat(std::max(least, threads)));
  unless_given("PYTHONUNBUFFERED", "1");  // Else the last words of a killed rank are lost.
  unless_given("KERAS_BACKEND", "tensorflow");
  AddHelp(help, inherited, &variables);
  return variables;
}

std::vector<std::string> Merge(std::vector<std::string> inherited,
                               const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(inherited, [&](const std::string& old) { return old.starts_with(name); });
    inherited.push_back(variable);
  }
  return inherited;
}

std::string Masked(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  std::string upper(name);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  for (const std::string_view word :
       {"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "KEY", "PRIVATE", "AUTH"}) {
    if (upper.find(word) != std::string::npos) return base::Cat(name, "=***");
  }
  // "http://user:password@proxy:3128"
  const size_t scheme = variable.find("://");
  if (scheme == std::string_view::npos) return std::string(variable);
  const size_t begin = scheme + 3;
  const size_t end = variable.substr(begin, variable.find('/', begin) - begin).rfind('@');
  if (end == std::string_view::npos) return std::string(variable);
  return base::Cat(variable.substr(0, begin), "***", variable.substr(begin + end));
}

std::vector<std::string> GpusOfRank(const std::vector<std::string>& all, int local_rank,
                                    int local_ranks) {
  const int count = static_cast<int>(all.size());
  if (count == 0 || local_ranks < 1) return {};
  if (count < local_ranks) return {all[static_cast<size_t>(local_rank % count)]};
  const int each = count / local_ranks;
  const auto first = all.begin() + static_cast<ptrdiff_t>(local_rank) * each;
  return {first, first + each};
}

}  // namespace tensord::train
