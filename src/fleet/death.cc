// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/death.h"

#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <memory>

#include "base/text.h"

namespace tensord::fleet {
namespace {

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? base::Cat("signal ", signal) : base::Cat("SIG", name);
}

// The number is a worker's, so any number.
std::string CallName(int number) {
  const std::unique_ptr<char, void (*)(void*)> name(
      seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number), free);
  if (name == nullptr) return base::Cat("system call ", number);
  return base::Cat(name.get(), " (system call ", number, ")");
}

}  // namespace

std::string DescribeForbidden(const channel::DyingRecord& last_words) {
  if (last_words.signal != SIGSYS || last_words.system_call < 0) return "";
  return base::Cat(", because the model called ", CallName(last_words.system_call),
                   ", which its sandbox forbids once it is warm (sandbox_stage: 1 in the model's "
                   "settings makes such a call fail instead)");
}

std::string DescribeLastWords(const channel::DyingRecord& last_words) {
  if (last_words.signal == 0) return "";
  return base::Cat(" (", SignalName(last_words.signal), ")", DescribeForbidden(last_words));
}

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) return base::Cat("killed by ", SignalName(WTERMSIG(wait_status)));
  return base::Cat("exit code ", WEXITSTATUS(wait_status));
}

}  // namespace tensord::fleet
