# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Takes turns: every contestant in a palindrome, disturbed turns dropped and made again."""

import os
import statistics
import sys

from method import machine, paired

METRICS = {"CPU": "cpu_us_per_request", "rate": "requests_per_second"}
METRICS |= {"p50": "p50_us", "p99": "p99_us"}
AGAIN = "tensord again"  # The A of A/A.


class Arena:
    """One run of the benchmark. `strict`: drops what is disturbed; else only says so."""

    def __init__(self, turns, strict=True, patience_s=20.0):
        self.turns = turns
        self.strict = strict
        self.patience_s = patience_s
        self.probes = []
        self.dropped = 0
        self.kept = 0

    def one(self, name, turn, measure, roots):
        """One round with the state of the machine around it."""
        probe = machine.probe_us()
        before, own = machine.CpuTimes.now(), machine.own_cpu(roots)
        found = measure()
        after = machine.CpuTimes.now()
        foreign, steal = machine.shares(before, after, machine.own_cpu(roots) - own, os.cpu_count())
        self.probes.append(probe)
        state = machine.Disturbance(foreign, steal, probe)
        disturbed = machine.reason_to_drop(state, statistics.median(self.probes))
        dropped = disturbed if self.strict else ""
        if not found["requests_per_second"]:
            dropped = disturbed = "nothing was answered"
        return (
            found
            | state.as_dict()
            | {
                "name": name,
                "turn": turn,
                "dropped": dropped,
                "disturbed": disturbed,
            }
        )

    def take_turns(self, title, contestants, roots):
        """contestants: name to a function that measures one round. All rounds."""
        rounds = []
        good = turn = 0
        while good < self.turns and turn < 2 * self.turns + 2:
            disturbed = False
            for name in paired.palindrome(list(contestants)):
                show(f"{title}: turn {good + 1} of {self.turns}, {name}")
                rounds.append(self.one(name, turn, contestants[name], roots))
                disturbed = disturbed or bool(rounds[-1]["dropped"])
            if disturbed:
                self.dropped += 1
                machine.wait_until_quiet(roots, self.patience_s)
            else:
                good += 1
                self.kept += 1
            turn += 1
        show("")
        return rounds

    def as_dict(self):
        return {"turns_kept": self.kept, "turns_disturbed": self.dropped, "strict": self.strict}


def show(words):
    """One line that changes, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words[:100]}", end="", file=sys.stderr, flush=True)


def summarise(title, rounds, baseline):
    """Medians of every contestant, and its ratios to the baseline."""
    names = list(dict.fromkeys(round_["name"] for round_ in rounds))
    case = {"case": title, "baseline": baseline, "contestants": {}}
    for name in names:
        row = {key: paired.median_of(rounds, name, key) for key in METRICS.values()}
        row["failed"] = sum(r.get("failed", 0) for r in rounds if r["name"] == name)
        row["client_cpu_us_per_request"] = paired.median_of(
            rounds, name, "client_cpu_us_per_request"
        )
        row["by_process"] = by_process(rounds, name)
        row["ratios"] = {}
        for word, key in METRICS.items():
            ratio = paired.paired_ratio(rounds, name, baseline, key)
            if name != baseline and ratio is not None:
                row["ratios"][word] = ratio.as_dict()
        case["contestants"][name] = row
    case["turns"] = len({r["turn"] for r in rounds if not r["dropped"]})
    case["disturbed_rounds"] = sum(1 for r in rounds if r["disturbed"])
    case["disturbances"] = sorted({r["disturbed"] for r in rounds if r["disturbed"]})[:5]
    return case


def by_process(rounds, name):
    key = "cpu_us_per_request_by_process"
    kept = [r[key] for r in rounds if r["name"] == name and not r["dropped"] and key in r]
    roles = {role for found in kept for role in found}
    return {role: statistics.median(f.get(role, 0.0) for f in kept) for role in sorted(roles)}
