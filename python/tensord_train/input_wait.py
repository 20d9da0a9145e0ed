# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a loop's time goes into waiting for its input."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class InputWait:
    """Wraps what a custom loop iterates over and measures the wait.

        batches = InputWait(strategy.experimental_distribute_dataset(dataset))
        for batch in batches:
            step(batch)
        print(batches.share())

    Under `tensord train` unmodified scripts are measured without it. For Keras's `fit` there is
    `input_wait_callback`.
    """

    def __init__(self, batches: Iterable[Any], skip: int = 1):
        """`skip`: steps to leave out first, which trace graphs and fill buffers."""
        self._batches = batches
        self._skip = skip
        self.steps = 0
        self.wait_seconds = 0.0
        self.step_seconds = 0.0

    def __iter__(self) -> Iterator[Any]:
        iterator = iter(self._batches)
        seen = 0
        while True:
            begin = time.perf_counter()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            waited = time.perf_counter() - begin
            yield batch
            seen += 1
            if seen > self._skip:
                self.steps += 1
                self.wait_seconds += waited
                self.step_seconds += time.perf_counter() - begin

    def share(self) -> float:
        """The part of the time that was spent waiting, 0 to 1."""
        return self.wait_seconds / self.step_seconds if self.step_seconds else 0.0


def _waited() -> float:
    """Seconds that this process has waited for batches, by the meter of `tensord train`."""
    from tensorflow.python.ops import gen_dataset_ops

    if "tensord_meters" not in sys.modules:  # Not in a rank of `tensord train`.
        sys.path.append(str(Path(__file__).parent / "inject"))
    import tensord_meters

    tensord_meters.measure_input(gen_dataset_ops)
    return tensord_meters.PROGRESS.waited()


def input_wait_callback(keras: Any = None) -> Any:
    """A callback for `fit`: the share of each epoch that was waiting, as `input_wait` in its logs.

    Make it before the first `fit`. `keras` is the module to take `Callback` from, such as tf_keras;
    Keras 3 if it is not given. Waiting for batches of validation counts as well.
    """
    if keras is None:
        import keras

    class InputWaitCallback(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.begin = time.perf_counter(), _waited()

        def on_epoch_end(self, epoch, logs=None):
            seconds, waited = time.perf_counter() - self.begin[0], _waited() - self.begin[1]
            if logs is not None:
                logs["input_wait"] = waited / seconds

    _waited()  # Measures from now on.
    return InputWaitCallback()
