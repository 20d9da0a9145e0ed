// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/children.h"

#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>

#include "base/small_file.h"
#include "base/text.h"

namespace tensord::supervisor {
namespace {

pid_t PidOf(std::string_view text) {
  pid_t pid = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), pid);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() ? pid : 0;
}

std::set<pid_t> ChildrenInProc() {
  std::set<pid_t> children;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator("/proc", error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const pid_t pid = PidOf(at->path().filename().string());
    if (pid > 0 && ParentInStat(base::SmallFile(at->path().string() + "/stat")) == getpid()) {
      children.insert(pid);
    }
  }
  return children;
}

}  // namespace

pid_t ParentInStat(std::string_view stat) {
  // "12 (any (text)) S 34 ..."
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 5) return 0;
  stat.remove_prefix(name_end + 4);
  return PidOf(stat.substr(0, stat.find(' ')));
}

std::set<pid_t> PidsInList(std::string_view text) {
  std::set<pid_t> pids;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (const pid_t pid = PidOf(text.substr(0, end)); pid > 0) pids.insert(pid);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pids;
}

std::set<pid_t> Children() {
  const std::string path = base::Cat("/proc/self/task/", getpid(), "/children");
  if (access(path.c_str(), R_OK) == 0) return PidsInList(base::SmallFile(path));
  return ChildrenInProc();
}

bool IsChild(pid_t pid) {
  siginfo_t info{};
  return pid > 0 && waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace tensord::supervisor
