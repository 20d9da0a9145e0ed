# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord advise`: a real input-bound script is diagnosed, and the proposed fix helps."""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from local_server import BIN, eventually
from train_runs import TrainRuns

TENSORD = BIN / "tensord"


def advise(*arguments, code=0):
    command = [str(TENSORD), "advise", *map(str, arguments)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == code, result
    return result.stdout if code == 0 else result.stderr


def clock_between(folder, begin, end):
    """The wait's share of the script's time, and its steps a second, by the script's own clock."""
    lines = (folder / "clock").read_text().splitlines()[:-1]  # The last may be half written.
    steps = [[float(word) for word in line.split()] for line in lines]
    steps = [step for step in steps if begin <= step[0] <= end]
    assert len(steps) > 5, "it trains"
    (t0, waited0, all0), (t1, waited1, all1) = steps[0], steps[-1]
    return (waited1 - waited0) / (all1 - all0), (len(steps) - 1) / (t1 - t0)


def watch(run, folder):
    """What `tensord advise` says of the input, or None; and the script's clock meanwhile."""
    begin = time.time()
    status = run.logs / "status.json"
    text = advise("--seconds=5", "--interval=0.5", f"--training_status={status}", "--json")
    found = [f for f in json.loads(text)["findings"] if f["id"] == "input.pipeline"]
    return (found or [None])[0], *clock_between(folder, begin, time.time())


def told_share(finding):
    return int(re.match(r"(\d+) % of the step time", finding["seen"]).group(1)) / 100


@pytest.mark.parametrize(
    ("way", "stage", "fix"),
    [("loop", "map: it runs one by one", "num_parallel_calls"), ("fit", "generator", "interleave")],
)
def test_a_script_that_waits_for_its_input_is_diagnosed_and_the_fix_helps(
    tmp_path, way, stage, fix
):
    """Under `tensord train`, which the script knows nothing of; the truth is the script's clock."""
    runs = TrainRuns(tmp_path)
    try:
        script = Path(__file__).with_name("input_bound.py")
        run = runs.start("--standalone", "--mode", "local", script=script, program=[way])
        status = run.logs / "status.json"
        eventually(
            lambda: status.exists() and "input_stage" in status.read_text(),
            "it waits, and for what",
        )
        finding, share, rate = watch(run, tmp_path)
        assert told_share(finding) == pytest.approx(share, abs=0.10), finding
        assert stage in finding["seen"], finding
        assert fix in finding["do"], finding
        (tmp_path / "fix").touch()
        run.wait_for("fixed")

        def helped():
            finding, new_share, new_rate = watch(run, tmp_path)
            told = 0 if finding is None else told_share(finding)
            if way == "loop":  # Sources side by side have no clock that says how long a step waits.
                told = max(told, new_share)
            return told < share / 2 and new_rate > 1.5 * rate

        eventually(helped, "with the fix it waits less and trains faster", 90)
        (tmp_path / "end").touch()
        assert run.code(60) == 0, run.output()
    finally:
        runs.finish()


def test_what_top_wrote_can_be_read_later(tmp_path):
    record = subprocess.run(
        [str(TENSORD), "top", "--once", "--json", "--interval=0.2"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    file = tmp_path / "record"
    file.write_text(record * 3)
    assert json.loads(advise(f"--from={file}", "--json"))["findings"]
    file.write_text("{}\n")
    assert "line 1" in advise(f"--from={file}", code=1)


def test_cost_compares_and_draws(tmp_path):
    table = tmp_path / "prices"
    table.write_text(advise("cost", "--print_table"))
    text = advise("cost", f"--table={table}", f"--svg={tmp_path}/plot.svg")
    month = re.search(r"break-even: month (\d+)", text).group(1)
    assert "Assumptions:" in text
    assert f"month {month}" in (tmp_path / "plot.svg").read_text()
    assert json.loads(advise("cost", "--json"))["break_even_month"] == int(month)
    table.write_text("machine = cheap\n")
    assert "line 1" in advise("cost", f"--table={table}", code=1)
    table.write_bytes(b"machine = " + 300 * b"\xff")
    assert '"' + 40 * "?" + '…" is not a number' in advise("cost", f"--table={table}", code=1)
    assert "directory" in advise("cost", f"--table={tmp_path}", code=2)
    assert "cannot read" in advise(f"--from={tmp_path}", code=1)


@pytest.mark.parametrize("option", ["--seconds=nan", "--interval=nan", "--seconds=inf"])
def test_times_that_are_no_times_are_refused(option):
    assert "not in range" in advise(option, code=2)
