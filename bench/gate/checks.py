# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The goals as a table, and what a run's figures say of them. Pure.

`limit` is about a fifth looser than `goal`: a machine in which others work must not fail a build
that is good. Where the goal is a share near 1, a fifth of the whole would say nothing: there the
limit is set by hand.
"""

from dataclasses import dataclass

AT_MOST, AT_LEAST = "at most", "at least"
SLACK = 0.2


@dataclass(frozen=True)
class Check:
    part: str  # The method of gate/measure.py that measures it.
    key: str
    words: str
    goal: float
    sense: str = AT_MOST
    limit: float | None = None  # When the usual slack does not fit.
    long: bool = False

    @property
    def bound(self):
        if self.limit is not None:
            return self.limit
        return self.goal * (1 + SLACK) if self.sense == AT_MOST else self.goal * (1 - SLACK)

    def holds(self, figure, bound):
        return figure <= bound if self.sense == AT_MOST else figure >= bound


@dataclass(frozen=True)
class Verdict:
    check: Check
    figure: float | None  # None: not measured.
    why: str = ""  # It was not.

    @property
    def passed(self):
        return self.figure is not None and self.check.holds(self.figure, self.check.bound)

    @property
    def reached(self):
        """The goal itself."""
        return self.figure is not None and self.check.holds(self.figure, self.check.goal)

    @property
    def word(self):
        if self.figure is None:
            return "NOT MEASURED"
        if not self.passed:
            return "FAILED"
        return "goal reached" if self.reached else "within the slack"


CHECKS = [
    Check("small", "small_beyond_us", "small Predict, 64 in flight: CPU us beyond the engine", 5),
    Check("small", "small_sync_ratio", "  gRPC sync's CPU is so many times tensord's", 6, AT_LEAST),
    Check(
        "small", "stock_beyond_us", "  with a stock gRPC C++ client: CPU us beyond the engine", 12
    ),
    Check("small", "rest_beyond_us", "  as JSON over REST: CPU us beyond the engine", 10),
    Check(
        "small", "front_rate", "small Predicts a second and core of the front", 120_000, AT_LEAST
    ),
    Check("small", "idle_ratio", "one in flight: p50 / TCP round trip of this machine", 1.6),
    Check(
        "images", "image_beyond_us", "602 KB from a gRPC C++ client: CPU us beyond the engine", 110
    ),
    Check("images", "image_copies", "  copies of the tensor in user space", 1, limit=1.05),
    Check("images", "json_front_ms", "1.7 MB JSON image: CPU ms of the front", 2.3),
    Check("images", "json_rapid_ratio", "  RapidJSON's DOM is so many times slower", 2.4, AT_LEAST),
    Check("images", "json_float_ns", "a float as text: ns", 34),
    Check(
        "light_load", "light_p50_ratio", "10 % load: p50 with batching / without", 1.03, limit=1.2
    ),
    Check("light_load", "light_p99_ratio", "  p99 with batching / without", 1.03, limit=1.25),
    Check("idle", "connection_kib", "10,000 idle connections: KiB each", 32),
    Check("workers", "worker_start_ms", "start of a worker beyond the load: ms", 20),
    Check("workers", "worker_private_mb", "private memory of a worker with a tiny model: MB", 15),
    Check(
        "sandbox",
        "sandbox_ratio",
        "CPU a small Predict in the sandbox / without",
        1.01,
        limit=1.05,
        long=True,
    ),
    Check(
        "best_batch",
        "best_batch_ratio",
        "saturation / the best fixed batch size",
        0.97,
        AT_LEAST,
        limit=0.9,
        long=True,
    ),
    Check(
        "efficiency",
        "mobilenet_efficiency",
        "MobileNetV2: served / bare engine",
        0.97,
        AT_LEAST,
        limit=0.9,
        long=True,
    ),
    Check(
        "efficiency",
        "resnet_efficiency",
        "ResNet-50: served / bare engine",
        0.99,
        AT_LEAST,
        limit=0.93,
        long=True,
    ),
    Check(
        "efficiency",
        "bert_efficiency",
        "BERT: served / bare engine",
        0.99,
        AT_LEAST,
        limit=0.93,
        long=True,
    ),
    Check(
        "overload", "goodput_2x", "goodput at 2 x capacity", 0.95, AT_LEAST, limit=0.85, long=True
    ),
    Check(
        "overload", "goodput_5x", "goodput at 5 x capacity", 0.95, AT_LEAST, limit=0.8, long=True
    ),
    Check(
        "overload", "goodput_10x", "goodput at 10 x capacity", 0.95, AT_LEAST, limit=0.75, long=True
    ),
    Check("overload", "accepted_p99_ms", "  p99 of the accepted, deadline 100 ms", 100, long=True),
    Check("overload", "refusal_ms", "  median refusal, ms", 1.0, long=True),
    Check("after_overload", "wasted_share", "  run time for callers who had gone", 0.01, long=True),
    Check("after_overload", "recovery_seconds", "  normal again after, s", 2.0, long=True),
    Check(
        "steady", "steady_p99_ratio", "70 % load: p99 / the M/D/c ideal", 1.15, limit=1.5, long=True
    ),
    Check("beside", "beside_load_ratio", "p99 beside a 2 GB load / quiet", 2.0, long=True),
]


def judge(figures, reasons=None, with_long=False, checks=None):
    """A verdict a check. reasons: part to why it was not measured."""
    reasons = reasons or {}
    return [
        Verdict(check, figures.get(check.key), reasons.get(check.part, ""))
        for check in (CHECKS if checks is None else checks)
        if with_long or not check.long
    ]


def rows(verdicts):
    """For a table: what, goal, bound, figure, verdict."""
    return [
        [
            v.check.words,
            f"{v.check.sense} {v.check.goal:g}",
            f"{v.check.bound:g}",
            v.figure,
            f"{v.word}{': ' if v.why else ''}{v.why}",
        ]
        for v in verdicts
    ]


HEADER = ["goal", "aim", "gate", "measured", "verdict"]


def parts(with_long, checks=None):
    """What has to be measured, in order."""
    wanted = [c.part for c in (CHECKS if checks is None else checks) if with_long or not c.long]
    return list(dict.fromkeys(wanted))
