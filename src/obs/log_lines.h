// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string_view>

namespace tensord::obs {

// Whole lines of the log, each with its newline, go there instead of to stderr: for a program that
// draws on the same terminal. Null: to stderr again.
// Threads: the only one that logs.
void SendLinesTo(std::function<void(std::string_view line)> take);

}  // namespace tensord::obs
