# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""A model too large for one device, its halves on two: the first layer here, the second there.

    tensord train --standalone --mode local -- python model_parallel.py

Without two GPUs it runs on two virtual CPU devices, so that the recipe can be tried anywhere.
"""

import argparse
import json

import tensorflow as tf


def two_devices():
    gpus = tf.config.list_logical_devices("GPU")
    if len(gpus) >= 2:
        return gpus[0].name, gpus[1].name
    cpus = tf.config.list_logical_devices("CPU")
    return cpus[0].name, cpus[1].name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--result", help="File for what came out")
    arguments = parser.parse_args()
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    first, second = two_devices()
    with tf.device(first):
        into = tf.Variable(tf.random.stateless_normal((8, 16), [1, 1]) * 0.3)
    with tf.device(second):
        out = tf.Variable(tf.random.stateless_normal((16, 1), [2, 2]) * 0.3)
    rows = tf.random.stateless_normal((64, 8), [3, 3])
    labels = tf.reduce_sum(rows, axis=1, keepdims=True)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            with tf.device(first):
                hidden = tf.tanh(rows @ into)  # Stays there; only this crosses.
            with tf.device(second):
                loss = tf.reduce_mean(tf.square(hidden @ out - labels))
        gradients = tape.gradient(loss, [into, out])
        for variable, gradient in zip([into, out], gradients, strict=True):
            with tf.device(variable.device):
                variable.assign_sub(0.1 * gradient)
        return loss

    losses = [float(step()) for _ in range(arguments.steps)]
    print(f"{into.device} and {out.device}: loss {losses[0]:.3f} -> {losses[-1]:.3f}", flush=True)
    if arguments.result:
        with open(arguments.result, "w") as file:
            json.dump({"first": losses[0], "last": losses[-1]}, file)


if __name__ == "__main__":
    main()
