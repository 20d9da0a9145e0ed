// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/top/host.h"

#include <algorithm>

#include "base/text.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr uint64_t kSectorBytes = 512;  // In /proc/diskstats, whatever the disk's own is.

uint64_t Field(const std::vector<std::string_view>& fields, size_t index) {
  if (index >= fields.size()) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(0, ToNumber(fields[index]).value_or(0)));
}

void ReadCpu(const std::string& stat, HostCounters* counters) {
  for (const std::string_view line : Split(stat, "\n")) {
    const auto fields = Split(line, " ");
    if (fields.empty()) continue;
    if (fields[0] == "procs_running") {
      counters->running = static_cast<int>(Field(fields, 1));
    } else if (fields[0] == "cpu") {
      // user nice system idle iowait irq softirq steal; guests are in user already.
      for (size_t i = 1; i <= 8; ++i) counters->cpu_all += Field(fields, i);
      counters->cpu_wait = Field(fields, 5);
      counters->cpu_busy = counters->cpu_all - Field(fields, 4) - counters->cpu_wait;
    }
  }
}

double Pressure(const Machine& machine, std::string_view what) {
  const std::string text = machine.ReadOr(base::Cat("/proc/pressure/", what));
  const size_t at = text.find("some avg10=");
  if (at == std::string::npos) return -1;
  const std::string_view rest = std::string_view(text).substr(at + 11);
  return ToDouble(rest.substr(0, rest.find(' '))).value_or(-1);
}

// Whole disks only: their partitions' bytes are in theirs.
void ReadDisks(const Machine& machine, HostCounters* counters) {
  const std::string table = machine.ReadOr("/proc/diskstats");
  for (const std::string_view line : Split(table, "\n")) {
    const auto fields = Split(line, " ");
    if (fields.size() < 10 || fields[2].starts_with("loop") || fields[2].starts_with("ram") ||
        fields[2].starts_with("dm-") || fields[2].starts_with("md")) {
      continue;
    }
    if (!machine.Exists(base::Cat("/sys/block/", fields[2]))) continue;
    counters->disk_read_bytes += Field(fields, 5) * kSectorBytes;
    counters->disk_written_bytes += Field(fields, 9) * kSectorBytes;
  }
}

void ReadNetwork(const std::string& table, HostCounters* counters) {
  for (const std::string_view line : Split(table, "\n")) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || Trim(line.substr(0, colon)) == "lo") continue;
    const auto fields = Split(line.substr(colon + 1), " ");
    counters->network_in_bytes += Field(fields, 0);
    counters->network_out_bytes += Field(fields, 8);
  }
}

double Rate(uint64_t before, uint64_t after, double divisor) {
  return after <= before || divisor <= 0 ? 0 : static_cast<double>(after - before) / divisor;
}

}  // namespace

HostCounters ReadHost(const Machine& machine, double seconds) {
  HostCounters counters;
  counters.seconds = seconds;
  ReadCpu(machine.ReadOr("/proc/stat"), &counters);
  const std::string meminfo = machine.ReadOr("/proc/meminfo");
  const auto bytes = [&meminfo](std::string_view key) {
    return static_cast<uint64_t>(std::max<int64_t>(0, NumberOf(meminfo, key).value_or(0)));
  };
  counters.memory_bytes = bytes("MemTotal");
  counters.memory_available = bytes("MemAvailable");
  counters.swap_used = bytes("SwapTotal") - std::min(bytes("SwapTotal"), bytes("SwapFree"));
  counters.pressure_cpu = Pressure(machine, "cpu");
  counters.pressure_memory = Pressure(machine, "memory");
  counters.pressure_io = Pressure(machine, "io");
  ReadDisks(machine, &counters);
  ReadNetwork(machine.ReadOr("/proc/net/dev"), &counters);
  return counters;
}

HostRates RatesOf(const HostCounters& before, const HostCounters& after) {
  HostRates rates;
  rates.seconds = after.seconds - before.seconds;
  const double ticks = Rate(before.cpu_all, after.cpu_all, 1);
  rates.cpu = std::min(1.0, Rate(before.cpu_busy, after.cpu_busy, ticks));
  rates.cpu_wait = std::min(1.0, Rate(before.cpu_wait, after.cpu_wait, ticks));
  rates.disk_read = Rate(before.disk_read_bytes, after.disk_read_bytes, rates.seconds);
  rates.disk_written = Rate(before.disk_written_bytes, after.disk_written_bytes, rates.seconds);
  rates.network_in = Rate(before.network_in_bytes, after.network_in_bytes, rates.seconds);
  rates.network_out = Rate(before.network_out_bytes, after.network_out_bytes, rates.seconds);
  return rates;
}

}  // namespace tensord::doctor
