// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <fstream>

namespace tensord::bench {

Machine ThisMachine() {
  Machine machine;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; machine.cpu.empty() && std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      machine.cpu = line.substr(colon + 2);
    }
  }
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) machine.cpus = CPU_COUNT(&cpus);
  utsname name;
  if (uname(&name) == 0) machine.kernel = name.release;
  return machine;
}

}  // namespace tensord::bench
