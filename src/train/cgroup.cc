// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "base/small_file.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

// The kernel lets go of a process in the group a little after its parent hears of its end.
constexpr int kRemovalsMax = 40;

bool WriteTo(const std::string& path, std::string_view text) {
  const base::UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

std::string GroupFolder(const std::string& mountinfo, const std::string& cgroup) {
  std::string own;
  std::istringstream groups(cgroup);
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) own = line.substr(3);
  }
  if (own.empty()) return "";
  std::istringstream mounts(mountinfo);
  for (std::string line; std::getline(mounts, line);) {
    // "36 25 0:30 /root /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string id, parent, device, root, folder;
    if (!(fields >> id >> parent >> device >> root >> folder)) continue;
    if (root == "/") root.clear();
    if (!own.starts_with(root)) continue;  // Of another container.
    own.erase(0, root.size());
    return own == "/" ? folder : base::Cat(folder, own);
  }
  return "";
}

std::string MakeGroup(const std::string& name) {
  const std::string folder =
      GroupFolder(base::SmallFile("/proc/self/mountinfo"), base::SmallFile("/proc/self/cgroup"));
  if (folder.empty()) return "";
  std::string group = base::Cat(folder, "/", name);
  return mkdir(group.c_str(), 0755) == 0 ? group : "";
}

void JoinGroup(const std::string& group) {
  if (!group.empty()) WriteTo(base::Cat(group, "/cgroup.procs"), "0");
}

bool SetGroupWeight(const std::string& group, int weight) {
  return !group.empty() && WriteTo(base::Cat(group, "/cpu.weight"), base::Cat(weight));
}

void KillGroup(const std::string& group) {
  if (!group.empty()) WriteTo(base::Cat(group, "/cgroup.kill"), "1");
}

void RemoveGroup(const std::string& group) {
  if (group.empty()) return;
  for (int i = 0; i < kRemovalsMax; ++i) {
    if (rmdir(group.c_str()) == 0 || errno != EBUSY) return;
    poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(limits::kKillEvery)));
  }
}

}  // namespace tensord::train
