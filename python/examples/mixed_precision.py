# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""float16 on the wire, gradient accumulation and a loss scale, in a custom loop.

    tensord train --standalone --nproc-per-node 2 -- python mixed_precision.py --wire float16

Prints what a rank sends for each optimizer step.
"""

import argparse
import hashlib
import json
import os

import tensord_train
import tensorflow as tf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--wire", default="float16", help="float32, float16 or bfloat16")
    parser.add_argument("--micro-batches", type=int, default=2)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--result", help="File for what came out; {rank} is replaced")
    arguments = parser.parse_args()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        weights = tf.Variable(tf.zeros((arguments.size, arguments.size)))
        accumulator = tensord_train.GradientAccumulator([weights])
        scale = tensord_train.LossScale(initial=1024.0)

    @tf.function
    def train(step):
        def one():
            for micro in range(arguments.micro_batches):
                seed = [step * arguments.micro_batches + micro, 1]
                rows = tf.random.stateless_normal((8, arguments.size), seed)
                with tf.GradientTape() as tape:
                    half = tf.cast(rows, "float16") @ tf.cast(weights, "float16")
                    error = tf.reduce_mean(tf.square(tf.cast(half, "float32") - rows))
                    scaled = scale.up(error)
                gradients, finite = scale.down(tape.gradient(scaled, [weights]))
                finite = scale.update(finite)
                accumulator.add([tf.where(finite, g, tf.zeros_like(g)) for g in gradients])
            (gradient,) = accumulator.take(arguments.wire)
            weights.assign_sub(10.0 * gradient / replicas)
            return error

        return strategy.reduce("MEAN", strategy.run(one), axis=None)

    losses = [round(float(train(tf.constant(i))), 4) for i in range(arguments.steps)]
    sent = tensord_train.all_reduce_bytes([weights], arguments.wire)
    print(f"loss {losses[0]} -> {losses[-1]}; {sent} bytes a rank and optimizer step", flush=True)
    if arguments.result:
        result = {
            "losses": losses,
            "weights": hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:12],
        }
        path = arguments.result.replace("{rank}", os.environ.get("RANK", "0"))
        with open(path, "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
