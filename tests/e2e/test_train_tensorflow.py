# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train` with real TensorFlow: unmodified scripts on two and three processes."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from local_server import eventually
from train_runs import EXAMPLES, TENSORFLOW_SECONDS, TrainRuns


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def results(folder, ranks):
    return [json.loads((folder / f"result_{i}").read_text()) for i in range(ranks)]


def plain_gradient_descent(steps, batch=12):
    """What custom_loop.py computes, without TensorFlow: the losses, and the sum of the weights."""
    rows = np.random.default_rng(1).normal(size=(batch * 4, 8)).astype(np.float32)
    labels = rows @ np.arange(8, dtype=np.float32)[:, None]
    weights, losses = np.zeros((8, 1), np.float32), []
    for step in range(steps):
        part = slice(step % 4 * batch, (step % 4 + 1) * batch)
        off = rows[part] @ weights - labels[part]
        losses.append(float(np.sum(off**2)) / batch)
        weights -= 0.05 * 2 * rows[part].T @ off / batch
    return losses, float(np.abs(weights).sum())


def in_one_process(folder, script, *arguments):
    """The same script without tensord; what came out."""
    path = folder / "single"
    command = [sys.executable, EXAMPLES / script, "--result", path, *arguments]
    subprocess.run(command, check=True, timeout=TENSORFLOW_SECONDS, capture_output=True)
    return json.loads(path.read_text())


def test_a_custom_loop_trains_alike_on_three_ranks_and_as_one_process(runs):
    program = ["--steps", "8", "--result", "result_{rank}"]
    run = runs.start(
        "--standalone", "--nproc-per-node", "3", script=EXAMPLES / "custom_loop.py", program=program
    )
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    first, *others = results(runs.folder, 3)
    for other in others:
        assert other["weights"] == first["weights"]
        assert other["losses"] == first["losses"]
    losses, total = plain_gradient_descent(8)
    assert first["losses"] == pytest.approx(losses, rel=1e-4)
    assert first["sum"] == pytest.approx(total, rel=1e-4)


def test_keras_3_fit_evaluate_and_predict_work_as_in_one_process(runs):
    script = EXAMPLES / "keras3_fit.py"
    run = runs.two(script, program=["--result", "result_{rank}", "--backup", "backup"])
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    first, other = results(runs.folder, 2)
    assert other["weights"] == first["weights"]
    for rank in (0, 1):
        saved = runs.folder / "backup" / f"rank_{rank}"
        assert any(saved.iterdir()), "each rank has its own backup"
    single = in_one_process(runs.folder, "keras3_fit.py", "--single")
    for name in ("loss", "mae", "val_loss", "evaluate", "sum"):
        assert first[name] == pytest.approx(single[name], rel=2e-3), name
    assert first["predicted"][0] == single["predicted"][0], "predict gives every row"
    assert first["predicted"][1] == pytest.approx(single["predicted"][1], rel=2e-3, abs=0.02)


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


def test_parameter_servers_are_ended_when_the_chief_is_done(runs):
    run = runs.start(
        "--standalone", "--mode", "ps", "--nproc-per-node", "3", "--grace", "1",
        script=EXAMPLES / "parameter_server.py", program=["--result", "result"],
    )  # fmt: skip
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    result = json.loads((runs.folder / "result").read_text())
    assert result["weight"] == pytest.approx(3.0, abs=0.01)


def test_half_the_bytes_and_accumulated_gradients_train_alike_on_all_ranks(runs):
    program = ["--wire", "float16", "--result", "result_{rank}"]
    run = runs.two(EXAMPLES / "mixed_precision.py", program=program)
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    first, other = results(runs.folder, 2)
    assert other["weights"] == first["weights"]
    assert first["losses"][-1] < first["losses"][0] * 0.9
    assert f"{64 * 64 * 2} bytes a rank" in run.output()


def test_16_bits_halve_the_bytes_and_accumulation_divides_them(runs):
    """Counted at the loopback of a network that only the two ranks use."""
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    script = runs.script(
        """
        import json, os, pathlib
        import tensord_train
        import tensorflow as tf

        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with strategy.scope():
            weights = tf.Variable(tf.zeros(500_000))
            accumulator = tensord_train.GradientAccumulator([weights])

        def make(wire, micro_batches):
            @tf.function
            def step():
                def one():
                    for _ in range(micro_batches):
                        accumulator.add([tf.ones(500_000)])
                    (gradient,) = accumulator.take(wire)
                    weights.assign_sub(gradient)
                strategy.run(one)
            return step

        def sent():
            lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
            (lo,) = [line for line in lines if line.split(":")[0].strip() == "lo"]
            return int(lo.split(":")[1].split()[0])

        bytes = {}
        for name, wire, micro_batches in (
            ("float32", "float32", 1), ("float16", "float16", 1), ("accumulated", "float32", 4)
        ):
            step = make(wire, micro_batches)
            step()
            before = sent()
            for _ in range(8):
                step()
            float(tf.reduce_sum(weights))
            bytes[name] = (sent() - before) / 8 / micro_batches
        print("weight", float(weights[0]), flush=True)
        pathlib.Path("bytes_" + os.environ["RANK"]).write_text(json.dumps(bytes))
        """
    )
    run = runs.two(script, "--isolate")
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    sent = json.loads((runs.folder / "bytes_0").read_text())
    assert sent["float32"] == pytest.approx(2 * 4 * 500_000, rel=0.15)
    assert sent["float16"] / sent["float32"] == pytest.approx(1 / 2, abs=0.05)
    assert sent["accumulated"] / sent["float32"] == pytest.approx(1 / 4, abs=0.03)
    # 27 optimizer steps of mean gradient 1 in each of two ranks.
    assert run.output().count("weight -54.0") == 2, run.output()


def test_a_model_over_two_devices_trains(runs):
    run = runs.start(
        "--standalone", "--mode", "local", script=EXAMPLES / "model_parallel.py",
        program=["--result", "result"],
    )  # fmt: skip
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    result = json.loads((runs.folder / "result").read_text())
    assert result["last"] < result["first"] / 2


def test_tf_keras_fit_works_as_in_one_process(runs):
    run = runs.two(EXAMPLES / "tf_keras_fit.py", program=["--result", "result_{rank}"])
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    first, other = results(runs.folder, 2)
    assert other == first
    single = in_one_process(runs.folder, "tf_keras_fit.py", "--single")
    assert first["loss"] == pytest.approx(single["loss"], rel=1e-3)


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
    run = runs.two(script, "--start-timeout", "25", "--grace", "2")
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


def test_train_publish_and_swap_are_one_command(runs, servers, rest_client, models):
    """A server has an older model of this name; what was trained takes its place."""
    base = runs.folder / "price"
    shutil.copytree(models / "half_plus_two", base)
    versions = {int(entry.name) for entry in base.iterdir()}
    server = servers.start(models={"price": base}, file_system_poll_wait_seconds="1")
    run = runs.start(
        "--standalone", "--export-dir", "export", "--publish", base,
        script=EXAMPLES / "keras3_fit.py",
        program=["--single", "--export", "export", "--result", "result"],
    )  # fmt: skip
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    new = max(versions) + 1
    assert f"published {base}/{new}" in run.output()
    x = np.random.default_rng(7).normal(size=(48, 8)).astype(np.float32)  # As the script has them.
    client = rest_client(server)

    def answer():
        inputs = {"a": x[:, :4].tolist(), "b": x[:, 4:].tolist()}
        reply = client.predict("price", {"inputs": inputs})
        return reply.ok and reply.json()["outputs"]

    outputs = eventually(answer, "the server answers with what was trained", 60)
    count, total = json.loads((runs.folder / "result").read_text())["predicted"]
    assert [len(outputs), float(np.sum(outputs))] == [count, pytest.approx(total, abs=0.01)]


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
