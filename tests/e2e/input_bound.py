# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Training that waits for its input; test_advise.py runs it under `tensord train`.

    input_bound.py loop|fit

`loop` has a map that waits, and its own clock stands around next(). `fit` is Keras's, and its
source waits; with nothing fetched in advance, the source's own clock tells how long a step waits.
Of each step a line goes to the file "clock": the time of day, seconds waited and seconds in all so
far. When the file "fix" appears, training goes on with what `tensord advise` proposes; when "end"
does, it ends. Nothing here knows of tensord.
"""

import os
import sys
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

WAIT_SECONDS = 0.04  # Stands for a disk, a network or a decoder; Python's lock is free meanwhile.
SIZE = 128
AUTO = tf.data.AUTOTUNE


class Clock:
    def __init__(self):
        self.file = Path("clock").open("w", buffering=1)
        self.waited = self.all = 0.0

    def step(self, waited, whole):
        self.waited += waited
        self.all += whole
        self.file.write(f"{time.time()} {self.waited} {self.all}\n")


def with_threads(dataset):
    options = tf.data.Options()
    options.threading.private_threadpool_size = 64
    return dataset.with_options(options).prefetch(AUTO)


def rows(number):
    time.sleep(WAIT_SECONDS)
    return np.full((SIZE, SIZE), number % 7, np.float32)


def mapped(fixed):
    def load(number):
        return tf.ensure_shape(tf.numpy_function(rows, [number], tf.float32), (SIZE, SIZE))

    numbers = tf.data.Dataset.range(1_000_000)
    return with_threads(numbers.map(load, num_parallel_calls=AUTO)) if fixed else numbers.map(load)


class Source:
    """What a generator gives, and how long that took."""

    seconds = 0.0

    @classmethod
    def examples(cls):
        number = 0
        while True:
            begin = time.perf_counter()
            example = rows(number)
            cls.seconds += time.perf_counter() - begin
            number += 1
            yield example, example[:, :1]


def generated(fixed):
    def one(_):
        spec = tf.TensorSpec((SIZE, SIZE)), tf.TensorSpec((SIZE, 1))
        return tf.data.Dataset.from_generator(Source.examples, output_signature=spec)

    if fixed:
        sources = tf.data.Dataset.range(32)  # So many that a fast machine does not wait, either.
        return with_threads(sources.interleave(one, cycle_length=32, num_parallel_calls=AUTO))
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # Else the clock is not the wait.
    return one(0).with_options(options)


def make_model():
    inner = [keras.layers.Dense(SIZE, activation="tanh") for _ in range(12)]
    model = keras.Sequential([keras.Input((SIZE,)), *inner, keras.layers.Dense(1)])
    model.compile("sgd", loss="mse")
    return model


def loop(model, dataset, clock, until):
    optimizer = keras.optimizers.SGD(1e-3)

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(batch)))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    batches = iter(dataset)
    step(next(batches))
    while not until.exists():
        begin = time.perf_counter()
        batch = next(batches)
        waited = time.perf_counter() - begin
        step(batch).numpy()
        clock.step(waited, time.perf_counter() - begin)


class Steps(keras.callbacks.Callback):
    def __init__(self, clock, until):
        super().__init__()
        self.clock, self.until = clock, until
        self.seconds, self.last = None, None

    def on_train_batch_end(self, batch, logs=None):
        now, seconds = time.perf_counter(), Source.seconds
        if self.last is not None:
            self.clock.step(seconds - self.seconds, now - self.last)
        self.seconds, self.last = seconds, now
        self.model.stop_training = self.until.exists()


def fit(model, dataset, clock, until):
    model.fit(dataset, steps_per_epoch=1_000_000, callbacks=[Steps(clock, until)], verbose=0)


def main():
    make, train = {"loop": (mapped, loop), "fit": (generated, fit)}[sys.argv[1]]
    clock, model = Clock(), make_model()
    for fixed, until in ((False, Path("fix")), (True, Path("end"))):
        train(model, make(fixed), clock, until)
        print("fixed" if not fixed else "ended", flush=True)
    os._exit(0)  # Threads of TensorFlow are inside the generators, and Python would wait for them.


if __name__ == "__main__":
    main()
