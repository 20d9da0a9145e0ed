# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs and intervals."""

import random

import pytest

from method import paired


def round_of(name, turn, value, dropped=""):
    return {"name": name, "turn": turn, "cpu": value, "dropped": dropped}


def test_a_turn_goes_there_and_back():
    assert paired.palindrome(["a", "b", "c"]) == ["a", "b", "c", "c", "b", "a"]


def test_an_even_drift_cancels_out():
    # The machine grows slower by 1 with each round; b costs twice a.
    rounds = []
    speed = 10.0
    for turn in range(4):
        for name in paired.palindrome(["a", "b"]):
            rounds.append(round_of(name, turn, speed * (2 if name == "b" else 1)))
            speed += 1
    assert paired.paired_ratio(rounds, "b", "a", "cpu").median == pytest.approx(2)


def test_a_dropped_round_takes_its_whole_turn_along():
    rounds = []
    for turn, value in enumerate([3.0, 3.0, 90.0]):
        dropped = "others" if turn == 2 else ""
        for name in paired.palindrome(["a", "b"]):
            rounds.append(round_of(name, turn, value if name == "b" else 1.0, dropped))
    ratio = paired.paired_ratio(rounds, "b", "a", "cpu")
    assert (ratio.median, ratio.pairs) == (3.0, 2)


def test_nothing_left_is_no_ratio():
    rounds = [round_of(n, 0, 1.0, "others") for n in paired.palindrome(["a", "b"])]
    assert paired.paired_ratio(rounds, "b", "a", "cpu") is None
    assert paired.median_of(rounds, "a", "cpu") is None


def test_the_interval_holds_the_true_median_about_as_often_as_it_says():
    generator = random.Random(1)
    held = 0
    for trial in range(200):
        values = [generator.gauss(5, 1) for _ in range(16)]
        low, high = paired.bootstrap_interval(values, seed=trial, resamples=300)
        held += low <= 5 <= high
    assert 180 <= held <= 200


def test_the_interval_narrows_with_more_pairs():
    generator = random.Random(2)
    widths = []
    for count in (8, 128):
        low, high = paired.bootstrap_interval([generator.gauss(5, 1) for _ in range(count)])
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_one_value_has_no_width_and_none_is_an_error():
    assert paired.bootstrap_interval([2.0]) == (2.0, 2.0)
    with pytest.raises(ValueError, match="every round was dropped"):
        paired.bootstrap_interval([])


def test_a_difference_no_larger_than_a_server_shows_against_itself_is_none():
    same = paired.Ratio(1.0, 0.95, 1.06, 8)
    assert not paired.differs(paired.Ratio(1.05, 1.04, 1.07, 8), same)
    assert paired.differs(paired.Ratio(1.20, 1.10, 1.30, 8), same)
    assert paired.differs(paired.Ratio(0.80, 0.70, 0.90, 8), same)
    assert not paired.differs(paired.Ratio(1.20, 0.90, 1.50, 8), same)
