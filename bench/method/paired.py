# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Ratios of interleaved rounds, and how sure they are. Pure functions."""

import random
import statistics
from dataclasses import dataclass

RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """The median of paired ratios with its bootstrap interval."""

    median: float
    low: float
    high: float
    pairs: int

    def as_dict(self):
        return {"median": self.median, "low": self.low, "high": self.high, "pairs": self.pairs}

    def __str__(self):
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


def palindrome(names):
    """One turn: A B C C B A. What drifts evenly falls alike on every name."""
    return [*names, *reversed(names)]


def bootstrap_interval(values, seed=7, resamples=RESAMPLES, confidence=CONFIDENCE):
    """The interval in which the median lies, by resampling. One value has no width."""
    if not values:
        raise ValueError("no values: every round was dropped")
    generator = random.Random(seed)
    medians = sorted(
        statistics.median(generator.choices(values, k=len(values))) for _ in range(resamples)
    )
    tail = (1 - confidence) / 2
    last = len(medians) - 1
    return medians[round(tail * last)], medians[round((1 - tail) * last)]


def turn_means(rounds, name, metric):
    """Per turn the mean of a contestant's rounds; None where one was dropped or is missing.

    rounds: dicts with turn, name, dropped (empty when kept) and the metrics.
    """
    turns = {}
    for round_ in rounds:
        if round_["name"] == name:
            value = None if round_["dropped"] else round_.get(metric)
            turns.setdefault(round_["turn"], []).append(value)
    return {
        turn: None if None in values else statistics.fmean(values) for turn, values in turns.items()
    }


def paired_ratio(rounds, name, against, metric):
    """name / against, turn by turn; None when no turn is left."""
    ours = turn_means(rounds, name, metric)
    theirs = turn_means(rounds, against, metric)
    ratios = [
        ours[turn] / theirs[turn]
        for turn in ours
        if ours[turn] is not None and theirs.get(turn) is not None and theirs[turn] > 0
    ]
    if not ratios:
        return None
    low, high = bootstrap_interval(ratios)
    return Ratio(statistics.median(ratios), low, high, len(ratios))


def median_of(rounds, name, metric):
    values = [r[metric] for r in rounds if r["name"] == name and not r["dropped"] and metric in r]
    return statistics.median(values) if values else None


def differs(ratio, same):
    """Whether a ratio is outside what the same server shows against itself (A/A)."""
    return ratio.low > max(1.0, same.high) or ratio.high < min(1.0, same.low)
