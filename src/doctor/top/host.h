// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "doctor/machine.h"

namespace tensord::doctor {

// The kernel's counters at one moment; rates come of two.
struct HostCounters {
  double seconds = 0;  // Monotonic.
  uint64_t cpu_busy = 0;
  uint64_t cpu_wait = 0;  // Idle with a read or write of a disk out.
  uint64_t cpu_all = 0;
  int running = 0;  // Threads that run or want to.
  uint64_t memory_bytes = 0;
  uint64_t memory_available = 0;
  uint64_t swap_used = 0;
  // Percent of the last ten seconds in which some task waited; -1: the kernel does not say.
  double pressure_cpu = -1;
  double pressure_memory = -1;
  double pressure_io = -1;
  uint64_t disk_read_bytes = 0;
  uint64_t disk_written_bytes = 0;
  uint64_t network_in_bytes = 0;  // Without the loopback.
  uint64_t network_out_bytes = 0;
};

HostCounters ReadHost(const Machine& machine, double seconds);

struct HostRates {
  double seconds = 0;  // Between the two.
  double cpu = 0;      // Share of all CPUs' time.
  double cpu_wait = 0;
  double disk_read = 0;  // Bytes a second, as the following.
  double disk_written = 0;
  double network_in = 0;
  double network_out = 0;
};

// Zeros where no time passed or a counter went back.
HostRates RatesOf(const HostCounters& before, const HostCounters& after);

}  // namespace tensord::doctor
