# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train` when real TensorFlow fails, waits or hangs."""

import json
import os
import signal

import pytest
from train_runs import EXAMPLES, TENSORFLOW_SECONDS, TrainRuns, results


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def test_a_killed_rank_restarts_the_group_from_the_checkpoint(runs):
    program = ["--steps", "60", "--checkpoints", "saved", "--result", "result_{rank}"]
    script = runs.script(
        (EXAMPLES / "custom_loop.py")
        .read_text()
        .replace(
            "        losses.append", "        __import__('time').sleep(0.1)\n        losses.append"
        )
    )
    run = runs.two(script, "--max-restarts", "1", "--grace", "5", program=program)
    run.wait_for("[worker/0] step 11 ", TENSORFLOW_SECONDS)
    os.kill(run.pid_of("worker/1"), signal.SIGKILL)
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    assert "first failure: worker/1, signal 9 (SIGKILL)" in run.output()
    resumed = [x for x in run.output().splitlines() if "resumed at step" in x]
    assert len(resumed) == 2, "both ranks, at the same step"
    assert len({x.split("resumed")[1] for x in resumed}) == 1
    first, other = results(runs.folder, 2)
    assert other["weights"] == first["weights"]
    assert first["restarts"] == "1"


def test_a_rank_that_never_connects_is_named(runs):
    """TensorFlow alone would wait an hour."""
    script = runs.script(
        """
        import os, time
        import tensorflow as tf
        if os.environ["RANK"] == "1":
            print("not coming", flush=True)
            time.sleep(600)
        tf.distribute.MultiWorkerMirroredStrategy()
        """
    )
    run = runs.two(script, "--start-timeout", "15", "--grace", "2")
    run.wait_for("not coming", TENSORFLOW_SECONDS)
    assert run.code(TENSORFLOW_SECONDS) == 1
    cause = run.output()
    assert (
        "/job:worker/replica:0/task:1" in cause or "worker/1 has not made its first step" in cause
    )


def test_a_stolen_port_is_no_failure_that_counts(runs):
    """Somebody listens where rank 1 was to serve; the next start has other ports."""
    script = runs.script(
        """
        import json, os, socket, time
        if os.environ["RESTART_COUNT"] == "1":
            raise SystemExit(0)
        if os.environ["RANK"] == "0":
            time.sleep(600)
        config = json.loads(os.environ["TF_CONFIG"])
        thief = socket.socket()
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("0.0.0.0", int(config["cluster"]["worker"][1].split(":")[1])))
        thief.listen()
        import tensorflow as tf
        tf.distribute.MultiWorkerMirroredStrategy()
        """
    )
    run = runs.two(script, "--grace", "1")
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    assert "a reserved port was taken; new ones are used" in run.output()
    assert "Could not start gRPC server" in run.output()


def test_an_input_bound_script_is_seen(runs):
    """A pipeline that sleeps 50 ms a batch, and a step that costs next to nothing."""
    script = runs.script(
        """
        import time, os, sys
        import tensorflow as tf
        def slow(x):
            return tf.py_function(lambda v: (time.sleep(0.05), v)[1], [x], tf.float32)
        data = tf.data.Dataset.from_tensors(tf.ones(4)).repeat(60).map(slow)
        @tf.function
        def step(it):
            return tf.reduce_sum(next(it))
        it = iter(data)
        for _ in range(60):
            step(it)
        import tensord_help
        wait = tensord_help.PROGRESS.waited()
        print("waited", round(wait, 2), "of at least 3 s, steps", tensord_help.PROGRESS.steps)
        assert 2.5 < wait < 60, wait
        assert tensord_help.PROGRESS.steps >= 60
        """
    )
    run = runs.start("--standalone", "--mode", "local", script=script)
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    assert "waited" in run.output()
    (rank,) = json.loads((run.logs / "status.json").read_text())["ranks"]
    assert rank["step"] >= 30
    assert rank["input_wait"] > 0.6
