# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""tf-keras (Keras 2) fit over several workers; needs the package tf_keras.

tensord train --standalone --nproc-per-node 2 -- python tf_keras_fit.py
"""

import argparse
import hashlib
import json
import os

import numpy as np
import tensorflow as tf
import tf_keras as keras


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--single", action="store_true", help="One process, no strategy")
    parser.add_argument("--result", help="File for what came out; {rank} is replaced")
    arguments = parser.parse_args()
    # First of all: it starts the server that ranks meet at.
    strategy = tf.distribute.get_strategy()
    if not arguments.single:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    random = np.random.default_rng(7)
    x = random.normal(size=(arguments.batch * 4, 8)).astype(np.float32)
    y = (x @ random.normal(size=(8, 1))).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(arguments.batch)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    with strategy.scope():
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(data.with_options(options), epochs=arguments.epochs, verbose=2)
    if arguments.result:
        weights = b"".join(w.tobytes() for w in model.get_weights())
        result = {
            "loss": history.history["loss"],
            "weights": hashlib.sha256(weights).hexdigest()[:12],
        }
        path = arguments.result.replace("{rank}", os.environ.get("RANK", "0"))
        with open(path, "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
