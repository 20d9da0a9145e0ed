// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::bench {

// Where a measurement was made.
struct Machine {
  std::string cpu;     // "AMD EPYC 9R14"
  int cpus = 0;        // That this process may use.
  std::string kernel;  // "6.1.0"
};
Machine ThisMachine();

}  // namespace tensord::bench
