# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Two ranks with two local replicas each, beside one process on the same batches.

TensorFlow makes one replica of all of a rank's CPUs. The script splits them in two and gives
MultiWorkerMirroredStrategy both, which is how it looks to a rank with two GPUs.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
from train_runs import TENSORFLOW_SECONDS, TrainRuns, results

SCRIPT = """
import contextlib, json, os, sys
import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended

def two_cpus():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    CollectiveAllReduceExtended._initialize_local_devices = lambda self, resolver, worker: (
        tuple(f"{worker}/device:CPU:{i}" for i in range(2)), "CPU")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 4
    return strategy

strategy = None if "--single" in sys.argv else two_cpus()
scope = strategy.scope() if strategy else contextlib.nullcontext()
random = np.random.default_rng(5)
x = random.normal(size=(58, 6)).astype(np.float32)
y = (x @ random.normal(size=(6, 1)) > 0).astype(np.float32)
result = {}

def loop():
    with strategy.scope():
        weights, bias = tf.Variable(tf.zeros([6, 1])), tf.Variable(0.0)

    @tf.function
    def step():
        def one():
            context = tf.distribute.get_replica_context()
            rows = context.replica_id_in_sync_group * 4 + tf.range(4)
            with tf.GradientTape() as tape:
                off = tf.reshape(tf.gather(x, rows), [4, 6]) @ weights + bias - 1.0
                loss = tf.reduce_sum(off**2) / 16
            # Each alone, so that there are two at the same time.
            for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
                variable.assign_sub(0.1 * context.all_reduce("SUM", gradient))
            return loss
        return strategy.reduce("SUM", strategy.run(one), axis=None)

    return [float(step()) for _ in range(5)]

def batches(rows, labels=True):
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    inputs = {"a": x[:rows, :4], "b": x[:rows, 4:]}
    made = tf.data.Dataset.from_tensor_slices((inputs, y[:rows]) if labels else (inputs,))
    return made.batch(16).with_options(options)

if strategy:
    result["losses"] = loop()
with scope:
    keras.utils.set_random_seed(3)
    a, b = keras.Input((4,), name="a"), keras.Input((2,), name="b")
    hidden = keras.layers.Dense(5, activation="tanh")(keras.layers.Concatenate()([a, b]))
    answer = keras.layers.Dense(1, activation="sigmoid", name="p")(hidden)
    model = keras.Model({"a": a, "b": b}, {"p": answer})
    metrics = {"p": ["mae", "accuracy"]}
    model.compile(keras.optimizers.Adam(0.02), {"p": "binary_crossentropy"}, metrics=metrics)
# 58 rows: the last batch has ten, which no four replicas share evenly.
history = model.fit(batches(48), epochs=2, validation_data=batches(58), verbose=0)
result["history"] = history.history
result["evaluate"] = model.evaluate(batches(58), verbose=0)
result["predict"] = model.predict(batches(58, labels=False), verbose=0)["p"][:, 0].tolist()
result["weights"] = np.concatenate([w.ravel() for w in model.get_weights()]).tolist()
with open(f"result_{os.environ['RANK']}" if strategy else "single", "w") as file:
    json.dump(result, file)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What both ranks, and one process, came to."""
    runs = TrainRuns(tmp_path_factory.mktemp("replicas"))
    script = runs.script(SCRIPT)
    run = runs.two(script)
    command = [sys.executable, script, "--single"]
    subprocess.run(command, check=True, timeout=TENSORFLOW_SECONDS, cwd=runs.folder)
    code = run.code(TENSORFLOW_SECONDS)
    runs.finish()
    assert code == 0, run.output()
    return *results(runs.folder, 2), json.loads((runs.folder / "single").read_text())


def losses_in_one_process():
    x = np.random.default_rng(5).normal(size=(58, 6)).astype(np.float32)[:16]
    weights, bias, losses = np.zeros((6, 1), np.float32), np.float32(0), []
    for _ in range(5):
        off = x @ weights + bias - 1
        losses.append(float(np.mean(off**2)))
        weights -= 0.1 * 2 * x.T @ off / 16
        bias -= 0.1 * 2 * off.mean()
    return losses


def test_a_custom_loop_over_two_ranks_of_two_replicas_is_as_in_one_process(trained):
    """The meter of the exchange must not let one replica of a rank wait for the other."""
    for rank in trained[:2]:
        assert rank["losses"] == pytest.approx(losses_in_one_process(), rel=1e-4)


def test_keras_3_over_two_ranks_of_two_replicas_is_as_in_one_process(trained):
    first, other, single = trained
    assert other == first, "weights, losses, metrics and answers"
    assert first["weights"] == pytest.approx(single["weights"], abs=1e-4)
    assert first["history"].keys() == single["history"].keys()
    for name, values in single["history"].items():
        assert first["history"][name] == pytest.approx(values, abs=2e-3), name
    assert first["evaluate"] == pytest.approx(single["evaluate"], abs=2e-3)
    assert len(first["predict"]) == 58
    assert first["predict"] == pytest.approx(single["predict"], abs=1e-3), "each row at its place"
