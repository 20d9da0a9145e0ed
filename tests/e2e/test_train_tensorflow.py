# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train` with real TensorFlow: unmodified scripts on two and three processes."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from local_server import eventually
from train_runs import EXAMPLES, TENSORFLOW_SECONDS, TrainRuns, results


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


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


@pytest.fixture(scope="module")
def published(tmp_path_factory, module_servers, models):
    """keras3_fit.py in one process, handed to a server that has an older model of that name."""
    folder = tmp_path_factory.mktemp("published")
    base = folder / "price"
    shutil.copytree(models / "half_plus_two", base)
    server = module_servers.start(models={"price": base}, file_system_poll_wait_seconds="1")
    runs = TrainRuns(folder)
    run = runs.start(
        "--standalone", "--export-dir", "export", "--publish", base,
        script=EXAMPLES / "keras3_fit.py",
        program=["--single", "--export", "export", "--result", "result"],
    )  # fmt: skip
    code = run.code(TENSORFLOW_SECONDS)
    runs.finish()
    assert code == 0, run.output()
    return run, server, json.loads((folder / "result").read_text())


def test_train_publish_and_swap_are_one_command(published, rest_client):
    """A server has an older model of this name; what was trained takes its place."""
    run, server, result = published
    assert "price/124" in run.output(), "the next version"
    x = np.random.default_rng(7).normal(size=(48, 8)).astype(np.float32)  # As the script has them.
    client = rest_client(server)

    def answer():
        inputs = {"a": x[:, :4].tolist(), "b": x[:, 4:].tolist()}
        reply = client.predict("price", {"inputs": inputs})
        return reply.ok and reply.json()["outputs"]

    outputs = eventually(answer, "the server answers with what was trained", 60)
    count, total = result["predicted"]
    assert [len(outputs), float(np.sum(outputs))] == [count, pytest.approx(total, abs=0.01)]


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


def test_keras_3_fit_evaluate_and_predict_work_as_in_one_process(runs, published):
    script = EXAMPLES / "keras3_fit.py"
    run = runs.two(script, program=["--result", "result_{rank}", "--backup", "backup"])
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    first, other = results(runs.folder, 2)
    assert other["weights"] == first["weights"]
    for rank in (0, 1):
        saved = runs.folder / "backup" / f"rank_{rank}"
        assert any(saved.iterdir()), "each rank has its own backup"
    _, _, single = published
    for name in ("loss", "mae", "val_loss", "evaluate", "sum"):
        assert first[name] == pytest.approx(single[name], rel=2e-3), name
    assert first["predicted"][0] == single["predicted"][0], "predict gives every row"
    assert first["predicted"][1] == pytest.approx(single["predicted"][1], rel=2e-3, abs=0.02)


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
