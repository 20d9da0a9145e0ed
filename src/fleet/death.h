// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::fleet {

// " (SIGSEGV)" for words about a worker that died by this signal; "" for 0.
std::string DescribeSignal(int signal);

// "killed by SIGKILL", "exit code 3": of a status as waitpid gave it.
std::string DescribeEnd(int wait_status);

}  // namespace tensord::fleet
