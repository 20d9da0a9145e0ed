# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train` on several machines: agents that meet over TCP, here in network namespaces."""

import signal
import subprocess
import uuid

import pytest
from local_server import free_port
from train_runs import TrainRuns

SHORT = """
    import json, os
    print("workers", json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"], flush=True)
"""
WAITING_ONCE = """
    import os, time
    print("up", os.environ["RESTART_COUNT"], flush=True)
    while os.environ["RESTART_COUNT"] == "0":
        time.sleep(1)
"""


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def start_pair(runs, script, *arguments, second=None, **more):
    """Two agents of this machine, as if they were two; the first leads."""
    meeting = f"127.0.0.1:{free_port()}"
    return [
        runs.start(
            "--nnodes", "2", "--rdzv", meeting, "--node-rank", str(i), *arguments,
            script=script if i == 0 else second or script, **more,
        )
        for i in (0, 1)
    ]  # fmt: skip


def test_agents_meet_start_together_and_end_together(runs):
    first, other = start_pair(runs, runs.script(SHORT))
    assert first.code() == 0, first.output()
    assert other.code() == 0, other.output()
    line = next(x for x in first.output().splitlines() if "workers" in x)
    assert line.removeprefix("[worker/0] ") in other.output()
    assert "[worker/1]" in other.output()


def test_a_wrong_token_is_sent_away(runs):
    (runs.folder / "token").write_text("right\n")
    meeting = f"127.0.0.1:{free_port()}"
    script = runs.script(SHORT)
    common = ["--nnodes", "2", "--rdzv", meeting]
    first = runs.start(
        *common, "--node-rank", "0", "--token-file", "token", "--join-timeout", "5", script=script
    )
    first.wait_for("waiting for the other machines")
    other = runs.start(
        *common, "--node-rank", "1", script=script, environment={"TENSORD_TRAIN_TOKEN": "wrong"}
    )
    assert other.code() == 1
    assert "another token" in other.output()
    assert first.code() == 1
    assert "1 of 2 machines did not come within 5 s" in first.output()


def test_another_script_is_found_before_the_start(runs):
    script = runs.script(SHORT)
    second = runs.script(SHORT + "\n", name="other.py")
    first, other = start_pair(runs, script, second=second)
    assert first.code() == 1
    assert "the script's hash differs" in first.output()
    assert other.code() == 1
    assert "workers" not in first.output() + other.output()


def test_check_meets_and_starts_nothing(runs):
    shared = runs.folder / "checkpoints"
    first, other = start_pair(runs, runs.script(SHORT), "--check", "--checkpoint-dir", str(shared))
    assert first.code() == 0, first.output()
    assert other.code() == 0, other.output()
    assert "2 machines with 2 ranks are ready" in first.output()
    assert "workers" not in first.output()
    assert not list(shared.iterdir()), "the marks are taken away"


@pytest.fixture
def networks():
    """Two network namespaces with a cable between them: 10.77.0.1 and 10.77.0.2."""
    names = [f"td{uuid.uuid4().hex[:6]}" for _ in range(2)]

    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip("network namespaces need root and iproute2")
    ip("link", "add", names[0], "type", "veth", "peer", "name", names[1])
    for i, name in enumerate(names):
        ip("link", "set", name, "netns", name)
        ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", name)
        ip("-n", name, "link", "set", name, "up")
        ip("-n", name, "link", "set", "lo", "up")
    yield names
    for name in names:
        ip("netns", "delete", name)


def start_apart(runs, networks, index, script, *arguments):
    return runs.start(
        "--nnodes", "2", "--rdzv", "10.77.0.1:29400", "--grace", "2", *arguments,
        script=script, under=["ip", "netns", "exec", networks[index]],
    )  # fmt: skip


def test_the_job_survives_the_loss_of_a_machine_that_comes_back(runs, networks):
    script = runs.script(WAITING_ONCE)
    first = start_apart(runs, networks, 0, script, "--max-restarts", "1")
    other = start_apart(runs, networks, 1, script)
    first.wait_for("up 0")
    other.wait_for("up 0")
    other.signal(signal.SIGKILL)
    first.wait_for("is lost")
    assert other.code() == -signal.SIGKILL
    again = start_apart(runs, networks, 1, script)
    assert first.code() == 0, first.output()
    assert again.code() == 0, again.output()
    assert "[worker/1] up 1" in again.output()


def test_a_lost_leader_ends_the_ranks_of_the_others(runs, networks):
    script = runs.script(WAITING_ONCE)
    first = start_apart(runs, networks, 0, script)
    other = start_apart(runs, networks, 1, script, "--join-timeout", "3")
    other.wait_for("up 0")
    first.signal(signal.SIGKILL)
    assert other.code() == 1
    assert "the leader is gone" in other.output()


def test_a_blocked_way_is_named_before_the_start(runs, networks):
    """The leader gives an address that nothing answers at."""
    script = runs.script(SHORT)
    first = start_apart(runs, networks, 0, script, "--address", "10.77.0.9")
    other = start_apart(runs, networks, 1, script)
    assert first.code() == 1, first.output()
    assert "nobody reaches 10.77.0.9:" in first.output()
    assert other.code() == 1
