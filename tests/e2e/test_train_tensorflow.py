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


EXCHANGE = """
import json, os, pathlib, time
import tensord_help
import tensord_train
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.zeros(500_000))
    accumulator = tensord_train.GradientAccumulator([weights])
    scale = tensord_train.LossScale(initial=8.0, growth_steps=3)
    scaled = tf.Variable(0.0)
rank = int(os.environ["RANK"])

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

help = tensord_help.PROGRESS
bytes, told = {}, {}
for name, wire, micro_batches in (
    ("float32", "float32", 1), ("float16", "float16", 1), ("accumulated", "float32", 4)
):
    step = make(wire, micro_batches)
    step()
    before, counted, begin = sent(), help.exchanged(), time.monotonic()
    for _ in range(8):
        step()
    float(tf.reduce_sum(weights))
    bytes[name] = (sent() - before) / 8 / micro_batches
    seconds, payload = (b - a for a, b in zip(counted, help.exchanged(), strict=True))
    told[name] = [payload / 8, seconds, time.monotonic() - begin]
print("weight", float(weights[0]), flush=True)

@tf.function
def scaled_step(overflows):
    def one():
        with tf.GradientTape() as tape:
            loss = scale.up(scaled)
        gradient = tf.where(overflows, float("inf"), tape.gradient(loss, scaled))
        gradients, finite = scale.down([gradient])
        finite = scale.update(finite)
        (gradient,) = tensord_train.all_reduce(gradients, "float32")
        scaled.assign_sub(tf.where(finite, gradient, 0.0))
    strategy.run(one)

steps = []
for i in range(5):
    scaled_step(tf.constant(i == 1 and rank == 1))
    steps.append([scale.value, float(scaled.numpy())])

def slow(x):
    return tf.py_function(lambda v: (time.sleep(0.05), v)[1], [x], tf.float32)
batches = iter(tf.data.Dataset.from_tensors(tf.ones(4)).repeat(30).map(slow))

@tf.function
def fetch():
    return tf.reduce_sum(next(batches))

before, begin, made = help.waited(), time.monotonic(), help.steps
for _ in range(30):
    fetch()
wait = [help.waited() - before, time.monotonic() - begin, help.steps - made]
result = {"bytes": bytes, "told": told, "steps": steps, "wait": wait}
pathlib.Path(f"exchange_{rank}").write_text(json.dumps(result))
"""


@pytest.fixture(scope="module")
def exchange(tmp_path_factory):
    """What ranks found in a network that only the two of them use, and what they said."""
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    runs = TrainRuns(tmp_path_factory.mktemp("exchange"))
    run = runs.two(runs.script(EXCHANGE), "--isolate")
    code = run.code(TENSORFLOW_SECONDS)
    runs.finish()
    assert code == 0, run.output()
    ranks = [json.loads((runs.folder / f"exchange_{i}").read_text()) for i in (0, 1)]
    status = json.loads((run.logs / "status.json").read_text())
    assert all("all_reduce_bytes" in rank for rank in status["ranks"]), "top and advise have it"
    return ranks, run.output()


def test_16_bits_halve_the_bytes_and_accumulation_divides_them(exchange):
    """Counted at the loopback."""
    (first, _), output = exchange
    sent = first["bytes"]
    assert sent["float32"] == pytest.approx(2 * 4 * 500_000, rel=0.15)
    assert sent["float16"] / sent["float32"] == pytest.approx(1 / 2, abs=0.05)
    assert sent["accumulated"] / sent["float32"] == pytest.approx(1 / 4, abs=0.03)
    # 27 optimizer steps of mean gradient 1 in each of two ranks.
    assert output.count("weight -54.0") == 2, output
    assert "listen on all interfaces" not in output, "they do not: nobody else is there"


def test_the_exchange_is_counted_in_bytes_and_in_time(exchange):
    """What `tensord advise` calls communication, beside what went over the loopback."""
    for rank in exchange[0]:
        told = rank["told"]
        assert [told[name][0] for name in ("float32", "float16")] == [2_000_000, 1_000_000]
        for _, seconds, whole in told.values():
            assert 0 < seconds < whole


def test_waiting_for_batches_inside_graphs_is_counted(exchange):
    """A pipeline that sleeps 50 ms a batch, and a step that costs next to nothing."""
    for rank in exchange[0]:
        waited, seconds, steps = rank["wait"]
        assert 1.2 < waited <= seconds
        assert steps == 30


def test_a_loss_that_overflows_on_one_rank_skips_the_step_on_all(exchange):
    """The scale halves then, and doubles again after three good steps."""
    ranks, _ = exchange
    for rank in ranks:
        scales, weights = zip(*rank["steps"], strict=True)
        assert weights == (-2.0, -2.0, -4.0, -6.0, -8.0)
        assert scales == (8.0, 4.0, 4.0, 4.0, 8.0)


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
