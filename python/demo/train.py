# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier of handwritten digits and exports it twice: version 2 is the better."""

import shutil
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Digits:
    """scikit-learn's digits: 8 x 8 pixels of 0 to 16, split into known and held-out ones."""

    known: np.ndarray
    known_labels: np.ndarray
    held_out: np.ndarray
    held_out_labels: np.ndarray


def load_digits():
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    pixels, labels = datasets.load_digits(return_X_y=True)
    known, held_out, known_labels, held_out_labels = train_test_split(
        pixels.astype(np.float32), labels, test_size=0.25, random_state=7, stratify=labels
    )
    return Digits(known, known_labels, held_out, held_out_labels)


def train(pixels, labels, epochs):
    import keras

    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((64,), name="pixels"),
            keras.layers.Rescaling(1 / 16),
            keras.layers.Reshape((8, 8, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    model.fit(pixels, labels, batch_size=32, epochs=epochs, verbose=0)
    return model


def export(model, path):
    """A SavedModel whose default signature answers with a label and how sure it is."""
    import keras
    import tensorflow as tf

    def classify(pixels):
        scores = model(pixels)
        return {
            "label": tf.argmax(scores, axis=1),
            "probability": tf.reduce_max(scores, axis=1),
        }

    shutil.rmtree(path, ignore_errors=True)
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = tf.TensorSpec([None, 64], tf.float32, "pixels")
    archive.add_endpoint("serve", classify, input_signature=[spec])
    archive.write_out(str(path), verbose=False)


def make_versions(digits, store):
    """store/1, taught with 60 digits, and store/2, taught with all that are not held out."""
    few = 60
    export(train(digits.known[:few], digits.known_labels[:few], epochs=60), store / "1")
    export(train(digits.known, digits.known_labels, epochs=12), store / "2")
