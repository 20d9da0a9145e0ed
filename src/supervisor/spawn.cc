// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace tensord::supervisor {
namespace {

// execve wants arrays of char*; it does not write to them.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void Fail(const std::string& path, const char* what) {
  std::fprintf(stderr, "tensord: cannot start %s: %s: %s\n", path.c_str(), what,
               std::strerror(errno));
  _exit(127);
}

// In the child. `parent` is who must still be there: PDEATHSIG is not sent for a death before it.
[[noreturn]] void BecomeProgram(const Program& program, int socket,
                                const std::vector<int>& inherited, pid_t parent) {
  if (setpgid(0, 0) != 0) Fail(program.path, "setpgid");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(program.path, "prctl");
  if (getppid() != parent) _exit(0);
  // A service manager's and a `killall`'s signals go to every process; what they mean the
  // supervisor alone decides. From before the program is there, so that no moment is left.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // dup2 leaves close-on-exec set when both numbers are the same.
  if (socket == channel::kZygoteSocketFd) {
    if (fcntl(socket, F_SETFD, 0) != 0) Fail(program.path, "fcntl");
  } else if (dup2(socket, channel::kZygoteSocketFd) < 0) {
    Fail(program.path, "dup2");
  }
  for (const int fd : inherited) {
    if (fcntl(fd, F_SETFD, 0) != 0) Fail(program.path, "fcntl");
  }
  execve(program.path.c_str(), Pointers(program.arguments).data(),
         Pointers(program.environment).data());
  Fail(program.path, "execve");
}

void SetVariable(std::vector<std::string>* environment, std::string_view name,
                 std::string_view value) {
  std::erase_if(*environment, [&](const std::string& variable) {
    return variable.starts_with(base::Cat(name, "="));
  });
  environment->push_back(base::Cat(name, "=", value));
}

// glibc keeps 7 freed pieces of each size a thread at hand, fewer than a front allocates and frees
// in one turn of its loop: the rest took the slow way, an eighth of a front's time with 64 calls in
// flight. Of the sizes kept, up to 1 KiB, 128 pieces each are 4 MiB a thread at most.
constexpr std::string_view kTunables = "GLIBC_TUNABLES";
constexpr std::string_view kPiecesKept = "glibc.malloc.tcache_count";
constexpr std::string_view kPiecesKeptValue = "128";

}  // namespace

static_assert(channel::kZygoteSocketFd == channel::kFrontSupervisorFd);

void TidyDescriptors() {
  // open takes the lowest number that is free.
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd <= STDERR_FILENO) {
    fcntl(fd, F_SETFD, 0);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  close(fd);
  if (close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
  // A kernel or a sandbox without close_range; nobody passes us numbers above this.
  for (fd = STDERR_FILENO + 1; fd < 1024; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

absl::StatusOr<pid_t> Start(const Program& program, int socket, const std::vector<int>& inherited) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) BecomeProgram(program, socket, inherited, parent);
  if (child < 0) {
    return absl::ResourceExhaustedError(base::Cat("fork: ", std::strerror(errno)));
  }
  return child;
}

std::vector<std::string> Environment() {
  std::vector<std::string> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) variables.emplace_back(*at);
  return variables;
}

std::vector<std::string> FrontEnvironment(std::vector<std::string> environment) {
  const std::string given(Variable(environment, kTunables));
  if (given.find(kPiecesKept) != std::string::npos) return environment;
  SetVariable(&environment, kTunables,
              base::Cat(given, given.empty() ? "" : ":", kPiecesKept, "=", kPiecesKeptValue));
  return environment;
}

std::vector<std::string> ZygoteEnvironment(std::vector<std::string> environment,
                                           channel::OneDnn onednn) {
  if (onednn != channel::OneDnn::kAuto) {
    SetVariable(&environment, "TF_ENABLE_ONEDNN_OPTS", onednn == channel::OneDnn::kOn ? "1" : "0");
  }
  // Each session gets threads of its own: else the first of a process chooses the number for all.
  SetVariable(&environment, "TF_OVERRIDE_GLOBAL_THREADPOOL", "1");
  if (Variable(environment, "TF_CPP_MIN_LOG_LEVEL").empty()) {
    SetVariable(&environment, "TF_CPP_MIN_LOG_LEVEL", "1");  // Warnings and worse.
  }
  return environment;
}

std::string_view Variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(base::Cat(name, "="))) {
      return std::string_view(variable).substr(name.size() + 1);
    }
  }
  return "";
}

}  // namespace tensord::supervisor
