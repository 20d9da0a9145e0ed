// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

Finding Source(const Machine& machine) {
  constexpr char kPath[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const std::string source(Trim(machine.ReadOr(kPath)));
  Finding finding{.id = "clock.source",
                  .seen = base::Cat("clock source: ", source.empty() ? "not known" : source)};
  if (source == "hpet" || source == "acpi_pm" || source == "jiffies" ||
      source == "refined-jiffies") {
    finding.level = Level::kWarning;
    finding.why =
        "each look at the clock is a slow system call, and a server looks several times a "
        "request";
    finding.action = "boot with clocksource=tsc tsc=reliable if the host's TSC is stable";
  }
  return finding;
}

}  // namespace

Findings CheckClock(const Machine& machine) {
  Findings findings = {Source(machine)};
  Finding synchronised{.id = "clock.synchronised", .seen = "the clock is kept by a time server"};
  if (!machine.clock_synchronised.value_or(false)) {
    synchronised.level = Level::kInfo;
    synchronised.seen = machine.clock_synchronised.has_value()
                            ? "no time server keeps the clock, says the kernel"
                            : "whether a time server keeps the clock is not known";
    synchronised.why =
        "machines that train together compare their clocks, and a file's age decides "
        "when a version counts as complete";
    synchronised.action = "run chrony or systemd-timesyncd (in a container: on its host)";
  }
  findings.push_back(std::move(synchronised));
  const absl::Time sane = absl::FromUnixSeconds(1735689600);  // 2025: before this program was made.
  if (machine.wall_time < sane) {
    findings.push_back({.id = "clock.date",
                        .level = Level::kError,
                        .seen = base::Cat("the calendar says ",
                                          absl::FormatTime(machine.wall_time, absl::UTCTimeZone())),
                        .why = "certificates and files seem to be from the future",
                        .action = "set the clock"});
  }
  return findings;
}

}  // namespace tensord::doctor
