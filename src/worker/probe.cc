// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/text.h"

namespace tensord::worker {
namespace {

// Raw calls, so that the kernel is asked and not the C library.
class Prober {
 public:
  // Refused means: failed with one of the errnos of a refusal. Any other outcome, also another
  // error, shows that the kernel got as far as looking at the arguments.
  void Try(std::string act, long result) {
    const int error = result < 0 ? errno : 0;
    const bool refused = error == EPERM || error == EACCES || error == ENOSYS;
    const char* name = error == 0 ? "it worked" : strerrorname_np(error);
    attempts_.push_back({std::move(act), refused, name == nullptr ? "unknown" : name});
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

void ProbeFiles(std::string_view model_directory, Prober* prober) {
  for (const char* path : {"/etc/passwd", "/etc/shadow", "/proc/1/environ"}) {
    // A file that is not there, or for whose reading one must be another, proves nothing.
    if (syscall(SYS_access, path, F_OK) == 0) {
      prober->Try(base::Cat("open ", path), TryOpen(path, O_RDONLY));
    }
  }
  prober->Try("list /", TryOpen("/", O_RDONLY | O_DIRECTORY));
  prober->Try("list the model's parent directory",
              TryOpen(base::Cat(model_directory, "/.."), O_RDONLY | O_DIRECTORY));
  for (const std::string& place :
       {std::string("/tmp"), std::string("/dev/shm"), std::string(model_directory)}) {
    const std::string path = base::Cat(place, "/.tensord_probe");
    const long fd = TryOpen(path, O_WRONLY | O_CREAT | O_EXCL);
    prober->Try(base::Cat("make a file in ", place), fd);
    if (fd >= 0) unlink(path.c_str());
  }
  const std::string made = base::Cat(model_directory, "/.tensord_probe");
  const long directory = syscall(SYS_mkdir, made.c_str(), 0700);
  prober->Try("make a directory in the model's directory", directory);
  if (directory == 0) rmdir(made.c_str());
  prober->Try("reopen the log pipe", TryOpen("/proc/self/fd/2", O_WRONLY));
  prober->Try("memfd_create", syscall(SYS_memfd_create, "probe", 1u));
}

void ProbeNetwork(Prober* prober) {
  constexpr std::pair<int, const char*> kFamilies[] = {
      {AF_INET, "IPv4"},       {AF_INET6, "IPv6"},    {AF_UNIX, "Unix"},
      {AF_NETLINK, "netlink"}, {AF_PACKET, "packet"}, {AF_VSOCK, "vsock"}};
  for (const auto& [family, name] : kFamilies) {
    const long fd = syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    prober->Try(base::Cat("make a socket (", name, ")"), fd);
    if (fd >= 0) close(static_cast<int>(fd));
  }
  int pair[2] = {-1, -1};
  const long made = syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
  prober->Try("socketpair", made);
  if (made == 0) close(pair[0]), close(pair[1]);
}

void ProbeProcesses(Prober* prober) {
  const pid_t parent = getppid();
  // No such file: where the call is possible, ENOENT says so and nothing was started.
  char no_file[] = "/tensord/no/such/file";
  char* no_arguments[] = {no_file, nullptr};
  prober->Try("execve", syscall(SYS_execve, no_file, no_arguments, no_arguments + 1));
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(0);
  prober->Try("fork", child);
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
  prober->Try("signal the parent", syscall(SYS_kill, parent, 0));
  prober->Try("signal a thread of the parent", syscall(SYS_tgkill, parent, parent, 0));
  prober->Try("ptrace", syscall(SYS_ptrace, PTRACE_PEEKDATA, parent, nullptr, nullptr));
  prober->Try("process_vm_readv", syscall(SYS_process_vm_readv, parent, nullptr, 0, nullptr, 0, 0));
  prober->Try("pidfd_open", syscall(SYS_pidfd_open, 0, 0));
  prober->Try("limits of the parent", syscall(SYS_prlimit64, parent, 0, nullptr, nullptr));
}

void ProbeKernel(Prober* prober) {
  prober->Try("unshare", syscall(SYS_unshare, 0));
  prober->Try("setns", syscall(SYS_setns, -1, 0));
  prober->Try("mount", syscall(SYS_mount, nullptr, nullptr, nullptr, 0, nullptr));
  prober->Try("chroot", syscall(SYS_chroot, nullptr));
  prober->Try("io_uring_setup", syscall(SYS_io_uring_setup, 0, nullptr));
  prober->Try("bpf", syscall(SYS_bpf, -1, nullptr, 0));
  prober->Try("userfaultfd", syscall(SYS_userfaultfd, -1));
  prober->Try("keyctl", syscall(SYS_keyctl, -1));
  prober->Try("perf_event_open", syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0));
  prober->Try("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, nullptr, 0));
  prober->Try("setuid 0", syscall(SYS_setuid, 0));
  prober->Try("prctl of PDEATHSIG", syscall(SYS_prctl, 1 /* PR_SET_PDEATHSIG */, -1));
  prober->Try("shmget", syscall(SYS_shmget, -1, 0, 0));
}

}  // namespace

std::vector<Attempt> TryForbiddenActs(std::string_view model_directory) {
  Prober prober;
  ProbeFiles(model_directory, &prober);
  ProbeNetwork(&prober);
  ProbeProcesses(&prober);
  ProbeKernel(&prober);
  return prober.Take();
}

std::vector<std::string> Summarize(const std::vector<Attempt>& attempts) {
  size_t refused = 0;
  std::vector<std::string> lines(1);
  for (const Attempt& attempt : attempts) {
    if (attempt.refused) {
      ++refused;
    } else {
      lines.push_back(base::Cat("probe: NOT refused: ", attempt.act, " (", attempt.seen, ")"));
    }
  }
  lines[0] = base::Cat("probe: ", refused, " of ", attempts.size(), " forbidden acts refused");
  return lines;
}

}  // namespace tensord::worker
