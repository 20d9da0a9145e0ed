# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The table of goals."""

import pytest

from gate import checks
from gate.measure import Gate, counted

UP = checks.Check("p", "up", "rate", 100, checks.AT_LEAST)
DOWN = checks.Check("p", "down", "cost", 10)
LONG = checks.Check("q", "long", "long", 1, long=True)
TABLE = [UP, DOWN, LONG]


@pytest.mark.parametrize(
    ("key", "figure", "word"),
    [
        ("up", 100, "goal reached"),
        ("up", 81, "within the slack"),
        ("up", 79, "FAILED"),
        ("down", 10, "goal reached"),
        ("down", 11.9, "within the slack"),
        ("down", 12.1, "FAILED"),
    ],
)
def test_a_figure_reaches_the_goal_or_stays_in_the_slack_or_fails(key, figure, word):
    verdicts = {v.check.key: v for v in checks.judge({key: figure}, checks=TABLE)}
    assert verdicts[key].word == word
    assert verdicts[key].passed == (word != "FAILED")


def test_what_was_not_measured_does_not_pass_and_says_why():
    verdicts = checks.judge({"up": 100}, {"p": "no file"}, checks=TABLE)
    assert [v.passed for v in verdicts] == [True, False]
    assert checks.rows(verdicts)[1][-1] == "NOT MEASURED: no file"


def test_a_case_whose_turns_were_all_disturbed_is_not_measured_and_says_so():
    case = {"case": "small", "turns": 0, "disturbances": ["others used 9 % of the CPUs"]}
    with pytest.raises(RuntimeError, match=r"no turn of 'small' counts: others used 9 %"):
        counted(case)
    assert counted(case | {"turns": 1})["turns"] == 1


def test_long_checks_are_left_out_unless_asked_for():
    assert [v.check.key for v in checks.judge({}, checks=TABLE)] == ["up", "down"]
    assert len(checks.judge({}, with_long=True, checks=TABLE)) == 3
    assert checks.parts(False, TABLE) == ["p"]
    assert checks.parts(True, TABLE) == ["p", "q"]


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda c: c.key)
def test_each_gate_is_looser_than_its_goal_but_not_by_much(check):
    looser = check.bound / check.goal if check.sense == checks.AT_MOST else check.goal / check.bound
    assert 1 < looser <= 1.31


def test_keys_are_unique_and_parts_are_measured():
    assert len({c.key for c in checks.CHECKS}) == len(checks.CHECKS)
    for part in checks.parts(True):
        assert callable(getattr(Gate, part))
