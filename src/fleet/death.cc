// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/death.h"

#include <string.h>
#include <sys/wait.h>

#include "base/text.h"

namespace tensord::fleet {
namespace {

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? base::Cat("signal ", signal) : base::Cat("SIG", name);
}

}  // namespace

std::string DescribeSignal(int signal) {
  return signal == 0 ? std::string() : base::Cat(" (", SignalName(signal), ")");
}

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) return base::Cat("killed by ", SignalName(WTERMSIG(wait_status)));
  return base::Cat("exit code ", WEXITSTATUS(wait_status));
}

}  // namespace tensord::fleet
