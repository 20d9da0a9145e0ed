# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, and figures read from logs and queues."""

import pytest

from method import cases, curves, facts, paired, report, rounds
from method.table import markdown_table, text_table


def rounds_of(values):
    """values: name to CPU; two turns there and back."""
    found = []
    for turn in range(2):
        for name in [*values, *reversed(values)]:
            metrics = {"cpu_us_per_request": values[name], "requests_per_second": 1e3}
            metrics |= {"p50_us": 10.0, "p99_us": 20.0, "failed": 1}
            found.append(metrics | {"name": name, "turn": turn, "dropped": "", "disturbed": ""})
    return found


def test_a_summary_has_medians_ratios_and_failures():
    found = rounds.summarise("case", rounds_of({"tensord": 5.0, "other": 15.0}), "tensord")
    other = found["contestants"]["other"]
    assert other["cpu_us_per_request"] == 15.0
    assert other["ratios"]["CPU"]["median"] == pytest.approx(3)
    assert other["failed"] == 4
    assert found["turns"] == 2


def test_the_table_takes_the_engine_off_and_marks_what_is_no_difference():
    values = {"tensord": 5.0, "bare engine": 2.0, "other": 15.0, "tensord again": 5.0}
    text = report.case_table(rounds.summarise("case", rounds_of(values), "tensord"))
    other = next(line for line in text.splitlines() if line.startswith("other"))
    assert "13.0" in other
    assert "3.00 [3.00, 3.00]" in other
    assert "1.00 [1.00, 1.00] =" in other


def test_columns_line_up():
    lines = text_table(["name", "n"], [["a", 1.5], ["bcd", 1234567.0]]).splitlines()
    assert lines[2] == "a          1.50"
    assert lines[3] == "bcd   1,234,567"
    assert markdown_table(["a"], [[None]]).splitlines()[-1] == "| - |"


def test_every_aim_belongs_to_a_case():
    assert set(report.AIMS) <= {case.title for case in cases.CASES}


def test_titles_of_cases_differ():
    titles = [case.title for case in cases.CASES]
    assert len(titles) == len(set(titles))


def test_the_start_of_a_worker_is_read_from_the_log():
    log = """
    front: model m, version 2: LOADING -> AVAILABLE after 120.5ms
    front: model m, version 2: loaded in 60ms, warmed up with zeros in 50ms (7 runs)
    front: model m, version 3: LOADING -> AVAILABLE after 1m2.5s
    front: model m, version 3: loaded in 62s, warmed up with zeros in 450ms (7 runs)
    front: model m, version 4: LOADING -> AVAILABLE after 9s
    """
    found = facts.worker_starts(log)
    assert found == pytest.approx({"2": 10.5, "3": 50.0})


class FakeServer:
    def __init__(self, flags):
        self.sandboxed = flags.get("sandbox") != "off"
        self.pid = 1
        self.stopped = False

    def stop(self):
        self.stopped = True


class FakeArena:
    """Takes two turns, and notes who was measured."""

    def __init__(self, dropped=""):
        self.dropped = dropped
        self.order = []

    def take_turns(self, _title, contestants, _roots):
        taken = []
        for turn in range(2):
            for name in paired.palindrome(list(contestants)):
                self.order.append(name)
                more = {"name": name, "turn": turn, "dropped": self.dropped}
                taken.append(contestants[name]() | more)
        return taken


@pytest.fixture
def fakes(monkeypatch):
    started = []

    def start(_name, _models, **flags):
        started.append(FakeServer(flags))
        return started[-1]

    def measure(server, *_):
        return {"cpu_us_per_request": 10.1 if server.sandboxed else 10.0}

    monkeypatch.setattr(facts.servers, "tensord", start)
    monkeypatch.setattr(facts.load, "closed_round", measure)
    return started


def test_the_sandbox_is_measured_in_turns_against_none(fakes):
    arena = FakeArena()
    found = facts.sandbox(arena, 1)
    assert arena.order == ["off", "on", "on", "off"] * 2
    assert found["cpu_ratio"]["median"] == pytest.approx(1.01)
    assert found["cpu_us"] == {"off": 10.0, "on": 10.1}
    assert [server.stopped for server in fakes] == [True, True]


def test_a_sandbox_whose_turns_were_all_disturbed_is_not_measured(fakes):
    with pytest.raises(RuntimeError, match="no turn counts"):
        facts.sandbox(FakeArena(dropped="others used 9 %"), 1)
    assert all(server.stopped for server in fakes)


def test_samples_are_summed_by_label():
    samples = {'a{x="1",y="2"}': 3.0, 'a{x="1",y="3"}': 4.0, 'ab{x="1"}': 100.0, "a": 1.0}
    assert facts.total(samples, "a", 'x="1"') == 7.0
    assert facts.total(samples, "a") == 8.0


def test_the_ideal_queue_is_the_one_of_the_books():
    # M/D/1 at 70 %: the mean wait is 0.7 / (2 * 0.3) = 1.17 services, the 99th percentile near 7.4.
    assert curves.ideal_p99(1, 0.7) == pytest.approx(7.4, rel=0.05)
    assert curves.ideal_p99(2, 0.7) == pytest.approx(4.1, rel=0.05)
    assert curves.ideal_p99(1, 0.01) == pytest.approx(1.0, rel=0.5)


FOUND = {"p99_us": 2500}
FACTS = {
    "tcp_round_trip": {"p50_us": 30.0, "p99_us": 60.0},
    "idle_connections": {"error": "the limit of open files is 1024; 10200 are needed"},
    "workers": {"start_ms": [8.0, 9.0, 30.0], "private_mb": 8.8},
    "socket_to_tensor": {
        "image": {"stages_us": {"read": 300.0, "parse": 10.0}, "copied_bytes_per_request": 602112}
    },
    "sandbox": {"cpu_ratio": {"median": 1.0042, "low": 0.998, "high": 1.009, "pairs": 4}},
    "zipf": {"quiet": FOUND, "busy": FOUND, "loads": 3},
    "micro": [{"name": "FloatsToText", "cpu_us": 3000.0, "cpu_ns_per_item": 30.0}],
}


def test_facts_stand_beside_what_is_aimed_at_and_absent_ones_say_why():
    text = report.facts_table(FACTS)
    lines = {line[:40].strip(): line for line in text.splitlines()}
    assert "9.00" in lines["start of a worker beyond its load, ms"]
    assert any("310" in line for line in lines.values())
    assert "1.004 [0.998, 1.009]" in lines["CPU a small Predict in the sandbox / wit"]
    assert "3 loads" in text
    assert "idle_connections: not measured: the limit of open files is 1024" in text
    assert "at most 34" in text
