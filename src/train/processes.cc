// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "train/cgroup.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

constexpr int kSweepsMax = 200;  // Of 50 ms: a process that cannot die (a dead disk) is left.

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void Fail(const std::string& what) {
  const std::string text = base::Cat("tensord train: ", what, ": ", std::strerror(errno), "\n");
  [[maybe_unused]] const ssize_t wrote = write(STDERR_FILENO, text.data(), text.size());
  _exit(127);
}

// Only speed is lost when the kernel refuses.
void StayAt(const Place& place) {
  Prefer(place.memory_node);
  if (place.cpus.empty()) return;
  // As large as the last CPU asks for: the common type ends at 1,024.
  const auto count = static_cast<size_t>(place.cpus.back()) + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  if (set == nullptr) return;
  CPU_ZERO_S(CPU_ALLOC_SIZE(count), set);
  for (const int cpu : place.cpus) CPU_SET_S(static_cast<size_t>(cpu), CPU_ALLOC_SIZE(count), set);
  sched_setaffinity(0, CPU_ALLOC_SIZE(count), set);
  CPU_FREE(set);
}

// In the child.
[[noreturn]] void Become(const ToSpawn& what, int in, int out, int err, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  signal(SIGPIPE, SIG_DFL);  // Python sets what it wants; others expect the default.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (in < 0) in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
    Fail("dup2");
  }
  JoinGroup(what.group);
  if (what.beats.valid()) fcntl(what.beats.get(), F_SETFD, 0);
  StayAt(what.place);
  execvpe(what.arguments[0].c_str(), Pointers(what.arguments).data(),
          Pointers(what.environment).data());
  Fail(base::Cat("cannot start ", what.arguments[0]));
}

pid_t PidOf(std::string_view text) {
  pid_t pid = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), pid);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? pid : 0;
}

// The parent in "12 (any (text)) S 34 …"; 0 for a zombie, which needs no killing.
pid_t LivingParent(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || stat.size() < name_end + 5) return 0;
  if (stat[name_end + 2] == 'Z') return 0;
  const std::string_view rest = std::string_view(stat).substr(name_end + 4);
  return PidOf(rest.substr(0, rest.find(' ')));
}

}  // namespace

absl::StatusOr<std::pair<base::UniqueFd, base::UniqueFd>> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(base::Cat("pipe: ", std::strerror(errno)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::pair(base::UniqueFd(ends[0]), base::UniqueFd(ends[1]));
}

absl::StatusOr<base::UniqueFd> TakeSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR2}) sigaddset(&taken, signal);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  base::UniqueFd signals(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals.valid()) return absl::InternalError("signalfd failed");
  return signals;
}

absl::StatusOr<Spawned> Spawn(const ToSpawn& what) {
  ASSIGN_OR_RETURN(auto out, MakePipe());
  ASSIGN_OR_RETURN(auto err, MakePipe());
  std::pair<base::UniqueFd, base::UniqueFd> in;
  if (what.input) {
    ASSIGN_OR_RETURN(in, MakePipe());
    fcntl(in.first.get(), F_SETFL, 0);  // The child expects a reading end that waits.
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) Become(what, in.first.get(), out.second.get(), err.second.get(), parent);
  if (child < 0) return absl::ResourceExhaustedError(base::Cat("fork: ", std::strerror(errno)));
  setpgid(child, child);  // Also here: who comes first must not matter to a kill of the group.
  return Spawned{.pid = child,
                 .out = std::move(out.first),
                 .err = std::move(err.first),
                 .in = std::move(in.second),
                 .beats = {}};
}

absl::StatusOr<std::string> RunAndRead(const ToSpawn& what, absl::Duration longest) {
  ASSIGN_OR_RETURN(Spawned child, Spawn(what));
  const absl::Time deadline = base::MonotonicClock().Now() + longest;
  std::string text;
  std::string errors;
  bool ended = false;
  while (!ended) {
    const absl::Duration left = deadline - base::MonotonicClock().Now();
    pollfd fds[] = {{.fd = child.out.get(), .events = POLLIN, .revents = 0},
                    {.fd = child.err.get(), .events = POLLIN, .revents = 0}};
    if (left <= absl::ZeroDuration() ||
        poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) {
      break;
    }
    char bytes[4096];
    const ssize_t got = read(child.out.get(), bytes, sizeof(bytes));
    if (got > 0) text.append(bytes, static_cast<size_t>(got));
    const ssize_t erred = read(child.err.get(), bytes, sizeof(bytes));
    if (erred > 0) errors.append(bytes, static_cast<size_t>(erred));
    ended = got == 0 && erred == 0;
  }
  kill(-child.pid, SIGKILL);  // Nothing is left of one that ended.
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(
        base::Cat(what.arguments[0], ended ? " failed: " : " did not end: ", errors));
  }
  return text;
}

absl::Status Isolate() {
  if (unshare(CLONE_NEWNET) != 0) {
    return absl::FailedPreconditionError(base::Cat(
        "--isolate needs the right to make a network namespace (root): ", std::strerror(errno)));
  }
  // Loopback is down in a new one.
  const base::UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof("lo"));
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(any.get(), SIOCSIFFLAGS, &request) != 0) {
    return absl::InternalError(base::Cat("--isolate: loopback stays down: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

std::set<pid_t> DescendantsIn(const std::map<pid_t, pid_t>& parents, pid_t root) {
  std::set<pid_t> found;
  // Pids are not ordered by age, so go over them until nothing is new.
  bool grew = true;
  while (grew) {
    grew = false;
    for (const auto& [pid, parent] : parents) {
      if (pid != root && (parent == root || found.contains(parent))) {
        grew = found.insert(pid).second || grew;
      }
    }
  }
  return found;
}

std::set<pid_t> Descendants() {
  std::map<pid_t, pid_t> parents;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator("/proc", error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const pid_t pid = PidOf(at->path().filename().string());
    if (pid == 0) continue;
    const std::string stat = base::SmallFile((at->path() / "stat").string());
    if (const pid_t parent = LivingParent(stat); parent > 0) parents[pid] = parent;
  }
  return DescendantsIn(parents, getpid());
}

void KillDescendants() {
  int none_seen = 0;  // Looks in a row that found nobody.
  for (int i = 0; i < kSweepsMax; ++i) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::set<pid_t> left = Descendants();
    // A parent that ends while /proc is read hides a child that was read before it; by the next
    // look the child is ours.
    none_seen = left.empty() ? none_seen + 1 : 0;
    if (none_seen == 2) return;
    if (none_seen == 1) continue;
    for (const pid_t pid : left) kill(pid, SIGKILL);
    poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(limits::kKillEvery)));
  }
}

}  // namespace tensord::train
