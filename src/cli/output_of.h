// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tensord::cli {

// What a program wrote to stdout, at most `bytes_max` of it; empty when it cannot be started. Its
// stderr is ours. REQUIRES: the program's path is the first argument.
std::string OutputOf(std::vector<std::string> arguments, size_t bytes_max);

}  // namespace tensord::cli
