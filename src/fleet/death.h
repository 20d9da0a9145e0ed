// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "channel/record.h"

namespace tensord::fleet {

// ", because the model called socket (system call 41), which ...": for words about the end of a
// worker that was sealed; "" for one that ended otherwise.
std::string DescribeForbidden(const channel::DyingRecord& last_words);

// " (SIGSEGV)" for words about a worker that died by this signal, with what is known of it; "" for
// 0.
std::string DescribeLastWords(const channel::DyingRecord& last_words);

// "killed by SIGKILL", "exit code 3": of a status as waitpid gave it.
std::string DescribeEnd(int wait_status);

}  // namespace tensord::fleet
