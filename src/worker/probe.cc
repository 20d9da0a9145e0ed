// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "worker/probe_calls.h"

namespace tensord::worker {
namespace {

// Raw calls, so that the kernel is asked and not the C library.
class Prober {
 public:
  // Refused means: failed with one of the errnos of a refusal. Any other outcome, also another
  // error, shows that the kernel got as far as looking at the arguments.
  void Try(ActKind kind, std::string act, long result) {
    const int error = result < 0 ? errno : 0;
    const bool refused = error == EPERM || error == EACCES || error == ENOSYS || error == EROFS;
    const char* name = error == 0 ? "it worked" : strerrorname_np(error);
    attempts_.push_back({std::move(act), refused, name == nullptr ? "unknown" : name, kind});
  }
  std::vector<Attempt> Take() { return std::move(attempts_); }

 private:
  std::vector<Attempt> attempts_;
};

long TryOpen(const std::string& path, int flags) {
  const long fd = syscall(SYS_openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd;
}

bool IsBelow(std::string_view path, std::span<const std::string> places) {
  return std::ranges::any_of(places, [path](const std::string& place) {
    return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
  });
}

void ProbeReading(std::string_view model_directory, std::span<const std::string> readable,
                  Prober* prober) {
  constexpr ActKind kKind = ActKind::kReadFile;
  for (const char* path : {"/etc/passwd", "/etc/shadow", "/proc/1/environ", "/root", "/home"}) {
    // A file that is not there, or for whose reading one must be another, proves nothing.
    if (syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0 && !IsBelow(path, readable)) {
      prober->Try(kKind, base::Cat("open ", path), TryOpen(path, O_RDONLY));
    }
  }
  prober->Try(kKind, "list /", TryOpen("/", O_RDONLY | O_DIRECTORY));
  // Other versions, and other models.
  std::string_view above = model_directory;
  while (above.ends_with('/')) above.remove_suffix(1);
  for (const char* what : {"the model's other versions", "other models"}) {
    above = above.substr(0, above.rfind('/'));
    if (above.empty() || IsBelow(above, readable)) break;
    prober->Try(kKind, base::Cat("list ", what), TryOpen(std::string(above), O_RDONLY));
  }
}

void ProbeWriting(std::string_view model_directory, Prober* prober) {
  constexpr ActKind kKind = ActKind::kWriteFile;
  for (const std::string& place : {std::string("/tmp"), std::string("/dev/shm"),
                                   std::string("/var/tmp"), std::string(model_directory)}) {
    if (syscall(SYS_faccessat, AT_FDCWD, place.c_str(), F_OK) != 0) continue;
    const std::string path = base::Cat(place, "/.tensord_probe");
    const long fd = TryOpen(path, O_WRONLY | O_CREAT | O_EXCL);
    prober->Try(kKind, base::Cat("make a file in ", place), fd);
    if (fd >= 0) unlink(path.c_str());
  }
  const std::string made = base::Cat(model_directory, "/.tensord_probe");
  const auto undo = [&](const char* act, long result) {
    prober->Try(kKind, base::Cat(act, " in the model's directory"), result);
    if (result == 0) unlinkat(AT_FDCWD, made.c_str(), 0);
  };
  undo("make a link", syscall(SYS_symlinkat, "x", AT_FDCWD, made.c_str()));
  undo("make a pipe", syscall(SYS_mknodat, AT_FDCWD, made.c_str(), S_IFIFO | 0600, 0));
  const long directory = syscall(SYS_mkdirat, AT_FDCWD, made.c_str(), 0700);
  prober->Try(kKind, "make a directory in the model's directory", directory);
  if (directory == 0) unlinkat(AT_FDCWD, made.c_str(), AT_REMOVEDIR);
  prober->Try(kKind, "write into /proc/self/mem", TryOpen("/proc/self/mem", O_RDWR));
}

void ProbeMemory(int memory_fd, Prober* prober) {
  constexpr ActKind kKind = ActKind::kKernel;
  const long made = syscall(SYS_memfd_create, "probe", 1u);
  prober->Try(kKind, "memfd_create", made);
  if (made >= 0) close(static_cast<int>(made));
  prober->Try(kKind, "reopen the log pipe", TryOpen("/proc/self/fd/2", O_WRONLY));
  if (memory_fd < 0) return;
  const std::string path = base::Cat("/proc/self/fd/", memory_fd);
  prober->Try(kKind, "reopen shared memory to write", TryOpen(path, O_RDWR));
  prober->Try(kKind, "grow shared memory", syscall(SYS_ftruncate, memory_fd, 0L));
  prober->Try(kKind, "punch a hole into shared memory",
              syscall(SYS_fallocate, memory_fd, 3 /* PUNCH_HOLE | KEEP_SIZE */, 0L, 1L));
  prober->Try(kKind, "open shared memory to all", syscall(SYS_fchmod, memory_fd, 0777));
}

void ProbeNetwork(Prober* prober) {
  constexpr ActKind kKind = ActKind::kNetwork;
  constexpr std::pair<int, const char*> kFamilies[] = {
      {AF_INET, "IPv4"},       {AF_INET6, "IPv6"},    {AF_UNIX, "Unix"},
      {AF_NETLINK, "netlink"}, {AF_PACKET, "packet"}, {AF_VSOCK, "vsock"}};
  for (const auto& [family, name] : kFamilies) {
    const long fd = syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    prober->Try(kKind, base::Cat("make a socket (", name, ")"), fd);
    if (fd >= 0) close(static_cast<int>(fd));
  }
  const long stream = syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  prober->Try(kKind, "make a socket (TCP)", stream);
  if (stream >= 0) close(static_cast<int>(stream));
  int pair[2] = {-1, -1};
  const long made = syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
  prober->Try(kKind, "socketpair", made);
  if (made == 0) close(pair[0]), close(pair[1]);
}

void TryChild(const char* act, unsigned long flags, Prober* prober) {
  const long child = syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(0);
  prober->Try(ActKind::kProcess, act, child);
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
}

void ProbeProcesses(Prober* prober) {
  constexpr ActKind kKind = ActKind::kProcess;
  const pid_t parent = getppid();
  // No such file: where the call is possible, ENOENT says so and nothing was started.
  char no_file[] = "/tensord/no/such/file";
  char* arguments[] = {no_file, nullptr};
  prober->Try(kKind, "execve", syscall(SYS_execve, no_file, arguments, arguments + 1));
  prober->Try(kKind, "execveat",
              syscall(SYS_execveat, AT_FDCWD, no_file, arguments, arguments + 1, 0));
  TryChild("fork", 0, prober);
  TryChild("vfork", CLONE_VFORK, prober);
  TryChild("make a user namespace", CLONE_NEWUSER, prober);
  prober->Try(kKind, "signal the parent", syscall(SYS_kill, parent, 0));
  prober->Try(kKind, "signal a thread of the parent", syscall(SYS_tgkill, parent, parent, 0));
  prober->Try(kKind, "signal a thread of anybody", syscall(SYS_tkill, parent, 0));
  prober->Try(kKind, "signal with data", syscall(SYS_rt_sigqueueinfo, parent, 0, nullptr));
  prober->Try(kKind, "signal its own group", syscall(SYS_kill, 0, 0));
  prober->Try(kKind, "ptrace", syscall(SYS_ptrace, PTRACE_PEEKDATA, parent, nullptr, nullptr));
  prober->Try(kKind, "process_vm_readv",
              syscall(SYS_process_vm_readv, parent, nullptr, 0, nullptr, 0, 0));
  prober->Try(kKind, "process_vm_writev",
              syscall(SYS_process_vm_writev, parent, nullptr, 0, nullptr, 0, 0));
  prober->Try(kKind, "kcmp", syscall(SYS_kcmp, parent, parent, -1, 0, 0));
  prober->Try(kKind, "move_pages of the parent",
              syscall(SYS_move_pages, parent, 0, nullptr, nullptr, nullptr, 0));
  prober->Try(kKind, "CPUs of the parent", syscall(SYS_sched_setaffinity, parent, 0, nullptr));
  prober->Try(kKind, "limits of the parent", syscall(SYS_prlimit64, parent, 0, nullptr, nullptr));
  prober->Try(kKind, "outlive the parent", syscall(SYS_prctl, 1 /* PR_SET_PDEATHSIG */, -1));
}

}  // namespace

std::vector<Attempt> TryForbiddenActs(std::string_view model_directory,
                                      std::span<const std::string> readable, int memory_fd) {
  Prober prober;
  ProbeReading(model_directory, readable, &prober);
  ProbeWriting(model_directory, &prober);
  ProbeMemory(memory_fd, &prober);
  ProbeNetwork(&prober);
  ProbeProcesses(&prober);
  for (const ProbeCall& call : kProbeCalls) {
    const auto& a = call.arguments;
    prober.Try(call.kind, call.act, syscall(call.number, a[0], a[1], a[2], a[3], a[4]));
  }
  return prober.Take();
}

std::vector<std::string> Summarize(const std::vector<Attempt>& attempts, absl::Duration spent) {
  constexpr size_t kNamedMax = 16;  // Without a filter all are possible; a few tell it.
  std::vector<std::string> lines(1);
  size_t possible = 0;
  for (const Attempt& attempt : attempts) {
    if (attempt.refused || ++possible > kNamedMax) continue;
    lines.push_back(base::Cat("probe: NOT refused: ", attempt.act, " (", attempt.seen, ")"));
  }
  if (possible > kNamedMax) {
    lines.push_back(base::Cat("probe: NOT refused: ", possible - kNamedMax, " more"));
  }
  const size_t refused = attempts.size() - possible;
  lines[0] = base::Cat("probe: ", refused, " of ", attempts.size(), " forbidden acts refused, in ",
                       absl::ToInt64Microseconds(spent), " us");
  return lines;
}

}  // namespace tensord::worker
