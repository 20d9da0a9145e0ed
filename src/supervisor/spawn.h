// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "channel/control.h"

namespace tensord::supervisor {

// A program to start.
struct Program {
  std::string path;
  std::vector<std::string> arguments;    // From argv[0] on.
  std::vector<std::string> environment;  // "NAME=value"
};

// Call first of all: opens /dev/null where 0, 1 or 2 is closed, so that no file of ours gets their
// numbers, and marks every other descriptor that this process was given close-on-exec.
void TidyDescriptors();

// Starts it as a child that is killed when this process dies, in a process group of its own (a
// Ctrl-C at the terminal must reach the supervisor alone), with no signal blocked. Its descriptor 3
// is `socket`; it keeps 0, 1, 2 and the numbers in `inherited`, and nothing else. A program that
// cannot be exec'd is a child that says so on stderr and ends with 127.
// REQUIRES: one thread; TidyDescriptors ran, and all that was opened since is close-on-exec; none
// in `inherited` is 3.
absl::StatusOr<pid_t> Start(const Program& program, int socket, const std::vector<int>& inherited);

// The environment of this process.
std::vector<std::string> Environment();
// The same for a front: glibc's allocator keeps more freed pieces a thread at hand, unless
// GLIBC_TUNABLES says how many.
std::vector<std::string> FrontEnvironment(std::vector<std::string> environment);
// The same for a zygote: oneDNN as asked, and TensorFlow's own chatter off unless asked for. Other
// variables go through: the zygote finds its runtime by them, and drops them before it forks.
std::vector<std::string> ZygoteEnvironment(std::vector<std::string> environment,
                                           channel::OneDnn onednn);
// The value of a variable, or "".
std::string_view Variable(const std::vector<std::string>& environment, std::string_view name);

}  // namespace tensord::supervisor
