// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/process_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/text.h"

namespace tensord::bench {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::string RoleOf(int pid, int root) {
  if (pid == root) return "supervisor";
  std::string line = ReadFile(base::Cat("/proc/", pid, "/cmdline"));
  std::replace(line.begin(), line.end(), '\0', ' ');
  const std::string program = line.substr(line.rfind('/', line.find(' ')) + 1);
  // A worker is a fork of its zygote and keeps its command line, so the two are one role.
  if (program.starts_with("tensord-worker")) return "worker";
  if (line.find(" front ") != std::string::npos) return "front";
  return program.substr(0, program.find(' '));
}

struct Process {
  int pid;
  ProcessStat stat;
};

std::vector<Process> AllProcesses() {
  const long ticks = sysconf(_SC_CLK_TCK);
  std::vector<Process> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    int pid = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (end.ec != std::errc() || end.ptr != name.data() + name.size()) continue;
    const auto stat = ParseStat(ReadFile(base::Cat("/proc/", pid, "/stat")), ticks);
    if (stat) all.push_back({pid, *stat});
  }
  return all;
}

}  // namespace

std::optional<ProcessStat> ParseStat(std::string_view stat, long ticks_per_second) {
  // The second field is the program's name in brackets and may hold anything, brackets too.
  const size_t close = stat.rfind(')');
  if (close == std::string_view::npos || close + 2 > stat.size()) return std::nullopt;
  std::istringstream fields{std::string(stat.substr(close + 2))};
  std::string state;
  ProcessStat result;
  fields >> state >> result.parent;
  constexpr int kFieldsBetween = 9;  // pgrp to cmajflt
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  uint64_t user = 0;
  uint64_t system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  result.cpu =
      absl::Seconds(1) * static_cast<double>(user + system) / static_cast<double>(ticks_per_second);
  return result;
}

CpuByRole CpuOfTree(int root) {
  const std::vector<Process> all = AllProcesses();
  std::vector<int> tree = {root};
  for (size_t i = 0; i < tree.size(); ++i) {
    for (const Process& process : all) {
      if (process.stat.parent == tree[i] && process.pid != tree[i]) tree.push_back(process.pid);
    }
  }
  CpuByRole cpu;
  for (const Process& process : all) {
    if (std::find(tree.begin(), tree.end(), process.pid) == tree.end()) continue;
    cpu[RoleOf(process.pid, root)] += process.stat.cpu;
  }
  return cpu;
}

CpuByRole Used(const CpuByRole& before, const CpuByRole& after) {
  CpuByRole used;
  for (const auto& [role, cpu] : after) {
    const auto at = before.find(role);
    used[role] = at == before.end() ? cpu : cpu - at->second;
  }
  return used;
}

}  // namespace tensord::bench
