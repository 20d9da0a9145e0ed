// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::worker {
namespace {

constexpr int kDropTriesMax =
    100;  // Of 10 ms: a thread that blocks every signal is told, not awaited.

std::string Error(std::string_view what) {
  return base::Cat(what, " (", std::strerror(errno), ")");
}

// Async-signal-safe.
bool SetCapabilities(uint64_t mask) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  for (int i = 0; i < 2; ++i) {
    data[i].effective = data[i].permitted = static_cast<uint32_t>(mask >> (32 * i));
  }
  return syscall(SYS_capset, &header, data) == 0;
}

void DropInThisThread(int) {
  const int saved = errno;
  SetCapabilities(0);
  errno = saved;
}

std::vector<std::string> Threads() {
  std::vector<std::string> threads;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return threads;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] != '.') threads.emplace_back(entry->d_name);
  }
  closedir(tasks);
  return threads;
}

// CapEff and CapPrm of a thread are both zero. A thread that has ended has none, either.
bool HasCapabilities(const std::string& thread) {
  std::ifstream status(base::Cat("/proc/self/task/", thread, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("CapEff:") && !line.starts_with("CapPrm:")) continue;
    if (line.find_first_not_of('0', line.find('\t') + 1) != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> ThreadsWithCapabilities() {
  std::vector<std::string> left;
  for (std::string& thread : Threads()) {
    if (HasCapabilities(thread)) left.push_back(std::move(thread));
  }
  return left;
}

// The kernel's number of this process's network; 0 when it does not tell.
ino_t NetworkNumber() {
  struct stat info {};
  return stat("/proc/self/ns/net", &info) == 0 ? info.st_ino : 0;
}

std::string ChangeUser(uint32_t user) {
  // Without the fix-up, changing the user leaves capabilities alone, and access(), with which the
  // runtime looks for files, honours them although the real user is not root.
  if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) != 0) {
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
  }
  // The groups first: that takes a capability which goes with the user in the second case.
  if (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 ||
      setresuid(user, user, user) != 0) {
    return base::Cat("user: not applied: ", geteuid(), " instead of ", user, Error(""));
  }
  return base::Cat("user: ", geteuid(), " (its own)");
}

}  // namespace

Layer ForbidNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
    return {.holds = false, .line = Error("no_new_privs: not applied")};
  }
  return {.holds = true, .line = "no_new_privs: on"};
}

Layer LimitResources() {
  constexpr std::array<std::pair<decltype(RLIMIT_CORE), rlim_t>, 7> kLimits = {{
      {RLIMIT_CORE, 0},
      {RLIMIT_FSIZE, 0},
      {RLIMIT_NOFILE, 1024},
      {RLIMIT_MEMLOCK, 0},
      {RLIMIT_MSGQUEUE, 0},
      {RLIMIT_RTPRIO, 0},
      {RLIMIT_NICE, 0},
  }};
  std::string failed;
  for (const auto& [resource, value] : kLimits) {
    rlimit limit{};
    getrlimit(resource, &limit);
    limit.rlim_cur = limit.rlim_max = std::min(limit.rlim_max, value);
    if (setrlimit(resource, &limit) != 0 || getrlimit(resource, &limit) != 0 ||
        limit.rlim_max > value) {
      failed += base::Cat(" ", static_cast<int>(resource));
    }
  }
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) failed += " dumpable";
  if (!failed.empty()) {
    return {.holds = false, .line = base::Cat("limits: not applied:", failed)};
  }
  return {.holds = true,
          .line = "limits: no core dump, no file growth, 1024 descriptors, not traceable"};
}

Layer LeaveNetwork() {
  const ino_t before = NetworkNumber();
  if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0) {
    return {.holds = false,
            .line = base::Cat("namespaces: the server's (", std::strerror(errno),
                              "; that takes CAP_SYS_ADMIN)")};
  }
  const ino_t after = NetworkNumber();
  if (before == 0 || after == before) {
    return {.holds = false, .line = "namespaces: unknown (/proc/self/ns cannot be read)"};
  }
  return {.holds = true, .line = "namespaces: its own for network, IPC and host name"};
}

Layer BecomeUser(uint32_t user) {
  const bool root = geteuid() == 0;
  std::string line;
  if (user == 0) {
    line = base::Cat("user: ", geteuid(), " (the server's: none of its own was given)");
  } else if (!root) {
    line = base::Cat("user: ", geteuid(), " (the server's: only root can give it its own)");
  } else {
    line = ChangeUser(user);
  }
  // An ordinary user's process has no capability to keep.
  if (!SetCapabilities(uint64_t{1} << CAP_DAC_READ_SEARCH) && !SetCapabilities(0)) {
    line += Error("; capabilities: not applied");
  }
  return {.holds = root && user != 0 && geteuid() == user && getegid() == user,
          .line = std::move(line)};
}

bool DieWith(pid_t supervisor) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == supervisor;
}

std::string DropCapabilities() {
  // The kernel changes the caller's capabilities only; so each thread is made to do it by a signal.
  const int signal = SIGRTMIN + 2;
  struct sigaction action {};
  action.sa_handler = DropInThisThread;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
  SetCapabilities(0);
  std::vector<std::string> left = ThreadsWithCapabilities();
  for (int tries = 0; !left.empty() && tries < kDropTriesMax; ++tries) {
    for (const std::string& thread : left) {
      int tid = 0;
      std::from_chars(thread.data(), thread.data() + thread.size(), tid);
      syscall(SYS_tgkill, getpid(), tid, signal);
    }
    poll(nullptr, 0, tries == 0 ? 0 : 10);
    left = ThreadsWithCapabilities();
  }
  const size_t threads = Threads().size();
  if (!left.empty()) {
    return base::Cat("capabilities: NOT dropped in ", left.size(), " of ", threads, " threads");
  }
  if (threads == 0) return "capabilities: unknown (/proc/self/task cannot be read)";
  return base::Cat("capabilities: none in ", threads, " threads");
}

}  // namespace tensord::worker
