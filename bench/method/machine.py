# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The machine: what it is, and whether something else disturbed it during a round."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
FOREIGN_MAX = 0.03  # Of all CPUs, during a round.
STEAL_MAX = 0.01
SLOW_MAX = 1.10  # The fixed piece of work against its median over the run.
QUIET_FOREIGN_MAX = 0.06  # Before a round.
PROBE_STEPS = 40_000


@dataclass(frozen=True)
class CpuTimes:
    """Seconds since boot, over all CPUs."""

    busy: float
    steal: float
    at: float  # Of the clock.

    @staticmethod
    def parse(text, at):
        """The first line of /proc/stat: user nice system idle iowait irq softirq steal ..."""
        fields = [int(word) / TICKS for word in text.splitlines()[0].split()[1:]]
        user, nice, system, _, _, irq, softirq, steal = fields[:8]
        return CpuTimes(user + nice + system + irq + softirq, steal, at)

    @staticmethod
    def now():
        return CpuTimes.parse(Path("/proc/stat").read_text(), time.monotonic())


@dataclass(frozen=True)
class Disturbance:
    foreign: float  # Share of all CPUs that others used.
    steal: float
    probe_us: float

    def as_dict(self):
        return {"foreign": self.foreign, "steal": self.steal, "probe_us": self.probe_us}


def shares(before, after, own_seconds, cpus):
    """What others used, and what the hypervisor took, of the time between two readings."""
    capacity = max(1e-9, (after.at - before.at) * cpus)
    foreign = max(0.0, after.busy - before.busy - own_seconds) / capacity
    return foreign, max(0.0, after.steal - before.steal) / capacity


def reason_to_drop(disturbance, probe_median_us):
    """Why a round does not count; empty when it does."""
    if disturbance.foreign > FOREIGN_MAX:
        return f"others used {disturbance.foreign:.1%} of the CPUs"
    if disturbance.steal > STEAL_MAX:
        return f"the hypervisor took {disturbance.steal:.1%}"
    if probe_median_us > 0 and disturbance.probe_us > SLOW_MAX * probe_median_us:
        return f"the clock was {disturbance.probe_us / probe_median_us:.2f} times slower"
    return ""


def probe_us():
    """CPU microseconds of a fixed piece of work: the clock, as far as a process can see it."""
    best = float("inf")
    for _ in range(3):
        begun = time.thread_time_ns()
        total = 0
        for step in range(PROBE_STEPS):
            total += step
        best = min(best, (time.thread_time_ns() - begun) / 1000)
    return best


def stat_of(pid):
    """(parent, CPU seconds with those of its ended children), or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[1]), sum(int(word) for word in fields[11:15]) / TICKS


def cpu_of_trees(roots):
    """CPU seconds of these processes and all their descendants."""
    stats = {int(n): stat_of(int(n)) for n in os.listdir("/proc") if n.isdigit()}
    family = set(roots)
    grew = True
    while grew:
        more = {p for p, s in stats.items() if s and s[0] in family and p not in family}
        grew = bool(more)
        family |= more
    return sum(stats[pid][1] for pid in family if stats.get(pid))


def own_cpu(roots):
    """Of the servers and of this process with the generators that it ran."""
    times = os.times()
    mine = times.user + times.system + times.children_user + times.children_system
    return cpu_of_trees(roots) + mine


def wait_until_quiet(roots, seconds_max, window=0.5):
    """Until others leave the CPUs alone, or for so long; the last share seen."""
    end = time.monotonic() + seconds_max
    while True:
        before, own = CpuTimes.now(), own_cpu(roots)
        time.sleep(window)
        foreign, _ = shares(before, CpuTimes.now(), own_cpu(roots) - own, os.cpu_count())
        if foreign < QUIET_FOREIGN_MAX or time.monotonic() > end:
            return foreign


def cpu_quota(root="/sys/fs/cgroup"):
    """CPUs that a cgroup grants this process; None for no quota."""
    two = Path(root) / "cpu.max"
    if two.exists():
        quota, period = two.read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    quota = Path(root) / "cpu/cpu.cfs_quota_us"
    if quota.exists() and int(quota.read_text()) > 0:
        return int(quota.read_text()) / int((quota.parent / "cpu.cfs_period_us").read_text())
    return None


def describe():
    model, flags = "unknown CPU", ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and model == "unknown CPU":
            model = value.strip()
        if key.strip() == "flags" and not flags:
            flags = value
    memory = Path("/proc/meminfo").read_text().split()[1]
    vector = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_tile") if name in flags]
    return {
        "cpu": model,
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "cpu_quota": cpu_quota(),
        "vector": vector,
        "virtual": "hypervisor" in flags,
        "kernel": platform.release().partition("-")[0],
        "memory_gib": round(int(memory) / (1 << 20), 1),
    }


def sentence(facts):
    quota = facts["cpu_quota"]
    parts = [
        facts["cpu"],
        f"{facts['cpus_usable']} CPUs" + ("" if quota is None else f" (quota {quota:g})"),
        "/".join(facts["vector"]) or "no AVX2",
        f"{facts['memory_gib']:g} GiB",
        f"Linux {facts['kernel']}",
    ]
    return ", ".join([*parts, "virtual machine"] if facts["virtual"] else parts)
