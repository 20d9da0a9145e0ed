# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""A training loop that waits for its input; test_advise.py runs it.

Arguments: a status file to keep, and a file whose appearance ends the first phase. Prints, as JSON,
the share of waiting over the whole phase by the loop's own clock, and the rates before and after
the fix that `tensord advise` proposes.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

STATUS, DONE = Path(sys.argv[1]), Path(sys.argv[2])
SIZE = 256


def slow_example(i):
    """Stands for decoding an image; the interpreter's lock is free meanwhile."""
    time.sleep(0.04)
    return np.full((SIZE, SIZE), i % 7, np.float32)


def pipeline(parallel):
    def load(i):
        example = tf.numpy_function(slow_example, [i], tf.float32)
        return tf.ensure_shape(example, (SIZE, SIZE))

    numbers = tf.data.Dataset.range(1_000_000)
    options = tf.data.Options()
    if parallel:
        options.threading.private_threadpool_size = 16
        loaded = numbers.map(load, num_parallel_calls=tf.data.AUTOTUNE)
        return loaded.prefetch(tf.data.AUTOTUNE).with_options(options)
    # Else TensorFlow adds a prefetch of its own.
    options.experimental_optimization.inject_prefetch = False
    return numbers.map(load).with_options(options)


weights = tf.Variable(tf.random.normal((SIZE, SIZE), stddev=0.01))


@tf.function
def step(x):
    for _ in range(10):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.matmul(x, weights), weights)))
        weights.assign_sub(1e-6 * tape.gradient(loss, weights))
    return loss


def timed_step(x):
    step(x).numpy()
    return time.perf_counter()


def first_phase():
    batches = iter(pipeline(parallel=False))
    timed_step(next(batches))
    real = waited = 0.0
    steps = 0
    while not DONE.exists():
        begin = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - begin
        real += timed_step(batch) - begin
        steps += 1
        rank = {"name": "worker/0", "step": steps, "steps_per_second": steps / real}
        rank["input_wait"] = waited / real
        part = STATUS.with_suffix(".part")
        part.write_text(json.dumps({"ranks": [rank]}))
        part.rename(STATUS)
    return waited / real, steps / real


def second_phase():
    batches = iter(pipeline(parallel=True))
    timed_step(next(batches))
    begin = time.perf_counter()
    for _ in range(40):
        end = timed_step(next(batches))
    return 40 / (end - begin)


share, before = first_phase()
print(json.dumps({"true_share": share, "before": before, "after": second_phase()}))
