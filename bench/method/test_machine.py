# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What counts as disturbed."""

import os
import time

import pytest

from method import machine

QUIET = machine.Disturbance(foreign=0.01, steal=0.0, probe_us=1000)
STAT = "cpu  {user} 0 {system} 5000 7 0 {softirq} {steal} 0 0\ncpu0 1 2 3\n"


def reading(at, user=0, system=0, softirq=0, steal=0):
    ticks = {
        k: int(v * machine.TICKS)
        for k, v in {"user": user, "system": system, "softirq": softirq, "steal": steal}.items()
    }
    return machine.CpuTimes.parse(STAT.format(**ticks), at)


def test_foreign_time_is_what_was_busy_and_not_ours():
    before, after = reading(0.0), reading(2.0, user=1.5, system=0.7, softirq=0.2, steal=0.1)
    foreign, steal = machine.shares(before, after, own_seconds=2.0, cpus=2)
    assert foreign == pytest.approx(0.1)
    assert steal == pytest.approx(0.025)


def test_more_of_our_own_than_was_busy_is_no_foreign_time():
    foreign, _ = machine.shares(reading(0.0), reading(1.0, user=1.0), own_seconds=1.1, cpus=2)
    assert foreign == 0.0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, ""),
        ({"foreign": 0.031}, "others"),
        ({"steal": 0.02}, "hypervisor"),
        ({"probe_us": 1120}, "clock"),
        ({"probe_us": 900}, ""),
    ],
)
def test_each_disturbance_is_named(change, word):
    reason = machine.reason_to_drop(machine.Disturbance(**(QUIET.as_dict() | change)), 1000)
    assert (word in reason) if word else (reason == "")


def test_the_cpu_time_of_a_tree_grows_with_work():
    before = machine.cpu_of_trees([os.getpid()])
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert machine.cpu_of_trees([os.getpid()]) - before >= 0.05


def test_a_quota_is_read_from_either_cgroup_version(tmp_path):
    assert machine.cpu_quota(tmp_path) is None
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("150000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert machine.cpu_quota(tmp_path) == 1.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine.cpu_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert machine.cpu_quota(tmp_path) == 0.5


def test_this_machine_is_described():
    assert "CPUs" in machine.sentence(machine.describe())
