# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a loop's time goes into waiting for its input."""

import time
from collections.abc import Iterable, Iterator
from typing import Any


class InputWait:
    """Wraps what a custom loop iterates over and measures the wait.

        batches = InputWait(strategy.experimental_distribute_dataset(dataset))
        for batch in batches:
            step(batch)
        print(batches.share())

    Under `tensord train` unmodified scripts are measured without it.
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
