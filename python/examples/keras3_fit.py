# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Keras 3 fit, evaluate and predict over several workers, as one would write it for one.

    tensord train --standalone --nproc-per-node 2 -- python keras3_fit.py

Alone, this fails under MultiWorkerMirroredStrategy in Keras 3; tensord's injected help mends it.
"""

import argparse
import contextlib
import hashlib
import json
import os

import keras
import numpy as np
import tensorflow as tf


def dataset(rows, batch):
    """Dictionary inputs; every rank takes its share of each batch."""
    random = np.random.default_rng(7)
    x = random.normal(size=(rows, 8)).astype(np.float32)
    y = (x @ random.normal(size=(8, 1))).astype(np.float32)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    made = tf.data.Dataset.from_tensor_slices(({"a": x[:, :4], "b": x[:, 4:]}, y))
    return made.batch(batch, drop_remainder=True).with_options(options)


def make_model():
    keras.utils.set_random_seed(3)
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    hidden = keras.layers.Dense(8, activation="tanh")(keras.layers.Concatenate()([a, b]))
    model = keras.Model({"a": a, "b": b}, keras.layers.Dense(1)(hidden))
    model.compile(keras.optimizers.SGD(0.05), loss="mse", metrics=["mae"])
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--single", action="store_true", help="One process, no strategy")
    parser.add_argument("--backup", help="Folder to resume from after a failure")
    parser.add_argument("--export", help="Folder for a SavedModel, written by the chief")
    parser.add_argument("--result", help="File for what came out; {rank} is replaced")
    arguments = parser.parse_args()

    # The strategy before anything else of TensorFlow: it starts the server that ranks meet at.
    scope = contextlib.nullcontext()
    if not arguments.single:
        scope = tf.distribute.MultiWorkerMirroredStrategy().scope()
    data = dataset(arguments.batch * 4, arguments.batch)
    with scope:
        model = make_model()
    callbacks = []
    if arguments.backup:
        # Kept at the end, so that a job that is done stays done when it is started again.
        backup = keras.callbacks.BackupAndRestore(arguments.backup, delete_checkpoint=False)
        callbacks.append(backup)
    history = model.fit(
        data, epochs=arguments.epochs, validation_data=data, callbacks=callbacks, verbose=2
    )
    evaluated = model.evaluate(data, verbose=0)
    predicted = model.predict(data, verbose=0)
    rank = os.environ.get("RANK", "0")
    if arguments.export and rank == "0":
        model.export(arguments.export)
    if arguments.result:
        weights = b"".join(np.asarray(w).tobytes() for w in model.get_weights())
        total = sum(float(np.abs(w).sum()) for w in model.get_weights())
        result = {
            "loss": [round(v, 4) for v in history.history["loss"]],
            "mae": [round(v, 4) for v in history.history["mae"]],
            "val_loss": [round(v, 4) for v in history.history["val_loss"]],
            "evaluate": [round(float(v), 4) for v in evaluated],
            "predicted": [len(predicted), round(float(np.sum(predicted)), 3)],
            "weights": hashlib.sha256(weights).hexdigest()[:12],
            "sum": round(total, 4),
        }
        with open(arguments.result.replace("{rank}", rank), "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
