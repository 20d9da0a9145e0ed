// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "obs/log.h"
#include "train/processes.h"

namespace tensord::train {
namespace {

// Set -> the code to end with.
int Watch(pid_t child, const sigset_t& signals) {
  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal == SIGHUP) signal = SIGTERM;  // A closed terminal.
    if (signal != SIGCHLD) {
      kill(child, signal);
      continue;
    }
    int status = 0;
    pid_t ended = 0;
    do {
      ended = waitpid(-1, &status, WNOHANG);  // Adopted ones, too.
    } while (ended > 0 && ended != child);
    if (ended != child) continue;
    KillDescendants();
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    obs::Error("the launcher was killed by signal {}; its ranks are ended", WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
}

}  // namespace

int Guarded(const std::function<int()>& work) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGCHLD, SIG_DFL);  // Ignored by who started us, nothing could be reaped.
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t guard = getpid();
  const pid_t child = fork();
  if (child < 0) {
    obs::Error("cannot start: fork: {}", std::strerror(errno));
    return 1;
  }
  if (child > 0) return Watch(child, signals);
  // A group of its own: Ctrl-C at the terminal reaches the guard alone, which passes it on once.
  setpgid(0, 0);
  signal(SIGTTOU, SIG_IGN);  // It writes from the background, also where `stty tostop` forbids it.
  sigset_t gone;
  sigemptyset(&gone);
  sigaddset(&gone, SIGUSR2);
  sigprocmask(SIG_BLOCK, &gone, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGUSR2);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int code = getppid() == guard ? work() : 1;
  KillDescendants();
  _exit(code);
}

}  // namespace tensord::train
