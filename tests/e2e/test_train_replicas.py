# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Two ranks with two local replicas each, beside what one process would compute.

TensorFlow makes one replica of all of a rank's CPUs. The script splits them in two and gives
MultiWorkerMirroredStrategy both, which is how it looks to a rank with two GPUs.
"""

import numpy as np
import pytest
from train_runs import TENSORFLOW_SECONDS, TrainRuns, results

SCRIPT = """
import json, os
import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
CollectiveAllReduceExtended._initialize_local_devices = lambda self, resolver, worker: (
    tuple(f"{worker}/device:CPU:{i}" for i in range(2)), "CPU")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
assert strategy.num_replicas_in_sync == 4
x = np.random.default_rng(5).normal(size=(16, 3)).astype(np.float32)
with strategy.scope():
    weights, bias = tf.Variable(tf.zeros([3, 1])), tf.Variable(0.0)

@tf.function
def step():
    def one():
        context = tf.distribute.get_replica_context()
        part = tf.reshape(tf.gather(x, context.replica_id_in_sync_group * 4 + tf.range(4)), [4, 3])
        with tf.GradientTape() as tape:
            off = part @ weights + bias - 1.0
            loss = tf.reduce_sum(off**2) / 16
        # Each alone, so that there are two at the same time.
        for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
            variable.assign_sub(0.1 * context.all_reduce("SUM", gradient))
        return loss
    return strategy.reduce("SUM", strategy.run(one), axis=None)

losses = [float(step()) for _ in range(5)]
result = {"losses": losses, "weights": weights.numpy().tolist(), "bias": float(bias.numpy())}
with open(f"result_{os.environ['RANK']}", "w") as file:
    json.dump(result, file)
"""


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def in_one_process():
    x = np.random.default_rng(5).normal(size=(16, 3)).astype(np.float32)
    weights, bias, losses = np.zeros((3, 1), np.float32), np.float32(0), []
    for _ in range(5):
        off = x @ weights + bias - 1
        losses.append(float(np.mean(off**2)))
        weights -= 0.1 * 2 * x.T @ off / 16
        bias -= 0.1 * 2 * off.mean()
    return losses, weights.tolist(), float(bias)


def test_two_ranks_of_two_replicas_train_as_one_process(runs):
    """The meter of the exchange must not let one replica of a rank wait for the other."""
    run = runs.two(runs.script(SCRIPT), "--start-timeout", "300")
    assert run.code(TENSORFLOW_SECONDS) == 0, run.output()
    first, other = results(runs.folder, 2)
    assert other == first
    losses, weights, bias = in_one_process()
    assert first["losses"] == pytest.approx(losses, rel=1e-4)
    assert np.ravel(first["weights"]) == pytest.approx(np.ravel(weights), rel=1e-3, abs=1e-5)
    assert first["bias"] == pytest.approx(bias, rel=1e-3, abs=1e-5)
