# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord advise`: a real input-bound script is diagnosed, and the proposed fix helps."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from local_server import BIN, eventually

TENSORD = BIN / "tensord"


def advise(*arguments, code=0):
    command = [str(TENSORD), "advise", *map(str, arguments)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == code, result
    return result.stdout if code == 0 else result.stderr


def test_an_input_bound_script_is_diagnosed_and_the_fix_helps(tmp_path):
    status, done = tmp_path / "status.json", tmp_path / "done"
    script = Path(__file__).with_name("input_bound.py")
    process = subprocess.Popen(
        [sys.executable, script, status, done], stdout=subprocess.PIPE, text=True
    )
    try:
        eventually(status.exists, "the script trains", 120)
        text = advise("--seconds=3", "--interval=0.5", f"--training_status={status}", "--json")
        done.touch()
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    truth = json.loads(output)
    (finding,) = [f for f in json.loads(text)["findings"] if f["id"] == "input.pipeline"]
    share = int(re.match(r"(\d+) % of the step time", finding["seen"]).group(1)) / 100
    assert share == pytest.approx(truth["true_share"], abs=0.10), (finding, truth)
    assert "num_parallel_calls" in finding["do"] or "more CPUs" in finding["do"], finding
    # The script's second phase does what was proposed: parallel map, prefetch last.
    assert truth["after"] > truth["before"], truth


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
