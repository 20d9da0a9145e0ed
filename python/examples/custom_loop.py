# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""A custom training loop under MultiWorkerMirroredStrategy that resumes from its checkpoint.

    tensord train --standalone --nproc-per-node 2 -- python custom_loop.py --checkpoints /tmp/c

Nothing here knows of tensord: TF_CONFIG, which tensord sets, is all that TensorFlow needs.
"""

import argparse
import hashlib
import json
import os

import numpy as np
import tensorflow as tf


def global_batches(batch):
    """The same rows on every rank; each takes its share of every batch."""
    rows = np.random.default_rng(1).normal(size=(batch * 4, 8)).astype(np.float32)
    labels = rows @ np.arange(8, dtype=np.float32)[:, None]
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).repeat().batch(batch)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def chief():
    return os.environ.get("RANK", "0") == "0"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--checkpoints", help="Folder to save to and resume from")
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--result", help="File for what came out; {rank} is replaced")
    arguments = parser.parse_args()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.zeros((8, 1)))
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
    checkpoint = tf.train.Checkpoint(weights=weights, step=step)
    manager = None
    if arguments.checkpoints:
        # Saving is called on all ranks; only the chief's folder is the one to resume from.
        folder = arguments.checkpoints
        mine = folder if chief() else f"{folder}/.of_rank_{os.environ['RANK']}"
        manager = tf.train.CheckpointManager(checkpoint, mine, max_to_keep=2)
        latest = tf.train.latest_checkpoint(folder)
        if latest:
            checkpoint.restore(latest)
            print(f"resumed at step {int(step.numpy())}", flush=True)

    @tf.function
    def train(rows, labels):
        def one(rows, labels):
            with tf.GradientTape() as tape:
                error = tf.reduce_sum(tf.square(rows @ weights - labels)) / arguments.batch
            gradient = tape.gradient(error, weights)
            context = tf.distribute.get_replica_context()
            weights.assign_sub(0.05 * context.all_reduce("SUM", gradient))
            return error

        return strategy.reduce("SUM", strategy.run(one, (rows, labels)), axis=None)

    losses = []
    batches = iter(strategy.experimental_distribute_dataset(global_batches(arguments.batch)))
    while int(step.numpy()) < arguments.steps:
        losses.append(round(float(train(*next(batches))), 5))
        step.assign_add(1)
        now = int(step.numpy())
        print(f"step {now} loss {losses[-1]}", flush=True)
        if manager and now % arguments.save_every == 0:
            manager.save(checkpoint_number=now)
    if arguments.result:
        result = {
            "losses": losses,
            "weights": hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:12],
            "sum": round(float(np.abs(weights.numpy()).sum()), 4),
            "restarts": os.environ.get("RESTART_COUNT", "0"),
        }
        path = arguments.result.replace("{rank}", os.environ.get("RANK", "0"))
        with open(path, "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
