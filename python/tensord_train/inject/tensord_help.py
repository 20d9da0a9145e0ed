# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What `tensord train` mends in a rank: bounded waits, Keras 3 over machines, steps, stacks.

Each patch waits for the module that it is for, checks that what it replaces looks as expected, says
once what it did, and does nothing otherwise. A failing patch never fails the script.
"""

import contextlib
import faulthandler
import fcntl
import importlib.abc
import os
import signal
import stat
import sys
import threading
import time
from importlib.machinery import PathFinder

import tensord_keras
import tensord_meters
from tensord_meters import PIPELINES, PROGRESS
from tensord_say import say

DUMP_SIGNAL = signal.SIGRTMIN + 6  # As in src/train/agent.cc.
BEAT_SECONDS = 0.5
STAGE_SECONDS = 2.0  # Asking for the slow stage costs more than a counter.
STAGE_SHARE = 0.1  # Of waiting; below it nobody asks.


# ---- Telling the launcher ------------------------------------------------------------------------


class Window:
    """What happened since the last beat, as a line for the launcher."""

    def __init__(self):
        self.steps = 0
        self.since = time.monotonic()
        self.waited = 0.0
        self.exchanged = (0.0, 0.0)
        self.stage = ("", 0.0)
        self.stage_at = self.since

    def line(self, steps):
        now, waited, exchanged = time.monotonic(), PROGRESS.waited(), PROGRESS.exchanged()
        seconds, first = max(now - self.since, 1e-6), self.steps == 0
        # The first window holds imports and tracing.
        wait = 0.0 if first else min((waited - self.waited) / seconds, 1.0)
        text = f"step={steps} wait={wait:.3f}"
        if exchanged[1] > 0 and not first:
            share = min((exchanged[0] - self.exchanged[0]) / seconds, 1.0)
            each = (exchanged[1] - self.exchanged[1]) / (steps - self.steps)
            text += f" reduce={share:.3f} bytes={each:.0f}"
        text += self._slow_stage(now, wait)
        self.steps, self.since, self.waited, self.exchanged = steps, now, waited, exchanged
        return text + "\n"

    def _slow_stage(self, now, wait):
        if wait < STAGE_SHARE:
            self.stage = ("", 0.0)
        elif now - self.stage_at >= STAGE_SECONDS:
            self.stage_at = now
            with contextlib.suppress(Exception):  # A version without it; the end of the script.
                self.stage = PIPELINES.slowest_stage()
        name, part = self.stage
        return f" stage={name} part={part:.3f}" if name else ""


def beat(descriptor):
    """Tells the launcher about new steps, twice a second."""
    window = Window()
    while True:
        steps = PROGRESS.steps
        if steps != window.steps:
            try:
                os.write(descriptor, window.line(steps).encode())
            except OSError:
                return  # The launcher is gone, and so are we, soon.
        time.sleep(BEAT_SECONDS)


# ---- Bounded waits -------------------------------------------------------------------------------


def bound_waits(module):
    """TensorFlow waits an hour for a missing peer; here the wait ends, and names it."""
    register_ms = int(os.environ.get("TENSORD_TRAIN_REGISTER_MS", "0"))
    heartbeat_ms = int(os.environ.get("TENSORD_TRAIN_HEARTBEAT_MS", "0"))
    original = module.Context.configure_coordination_service
    if register_ms <= 0 or os.environ.get("TENSORD_TRAIN_TASK", "").startswith("ps/"):
        return

    def configure(self, service_type, *args, **kwargs):
        if kwargs.get("allow_new_incarnation_to_reconnect"):  # Parameter servers: their own rules.
            return original(self, service_type, *args, **kwargs)
        kwargs["cluster_register_timeout_in_ms"] = register_ms
        if heartbeat_ms > 0:
            kwargs["heartbeat_timeout_in_ms"] = heartbeat_ms
        result = original(self, service_type, *args, **kwargs)
        # Only this bounds the leader's own wait.
        self._coordination_service_config.cluster_register_with_barrier = True
        return result

    module.Context.configure_coordination_service = configure
    say(f"ranks must find each other within {register_ms / 1000:g} s")


# ---- Arming --------------------------------------------------------------------------------------

HOOKS = {
    "tensorflow.python.eager.context": bound_waits,
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": (
        tensord_meters.count_functions
    ),
    "tensorflow.python.distribute.coordinator.cluster_coordinator": tensord_meters.count_schedules,
    "tensorflow.python.ops.gen_dataset_ops": tensord_meters.measure_input,
    "tensorflow.python.data.ops.iterator_ops": PIPELINES.watch,
    "tensorflow.python.ops.gen_collective_ops": tensord_meters.measure_exchange,
    "keras.src.backend.tensorflow.trainer": tensord_keras.mend_keras,
    "keras.src.callbacks.backup_and_restore": tensord_keras.mend_backup,
}


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of HOOKS as ever, and runs their hook behind them."""

    def find_spec(self, fullname, path=None, target=None):
        hook = HOOKS.get(fullname)
        if hook is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            try:
                hook(module)
            except Exception as error:  # The script must not suffer.
                say(f"{hook.__name__} did not work with this version ({error!r}): left out")

        spec.loader.exec_module = exec_module
        return spec


def beat_descriptor(text):
    """The number of the launcher's pipe, or None where it is not: closed, or something else's now.

    A program between the launcher and this one may have closed it and passed its variable on.
    """
    with contextlib.suppress(ValueError, OverflowError, OSError):
        number = int(text)
        writes = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        if number > 2 and writes and stat.S_ISFIFO(os.fstat(number).st_mode):
            return number
    return None


def arm():
    text = os.environ.pop("TENSORD_TRAIN_BEAT_FD", "")
    if not text:
        return  # A child of the rank, such as a data worker: not the one that is watched.
    descriptor = beat_descriptor(text)
    if descriptor is None:
        say(
            f"descriptor {text} is not the launcher's pipe: what starts this Python has closed it. "
            "The help is left out; start Python by `tensord train` itself, or give --no-inject"
        )
        return
    sys.meta_path.insert(0, Finder())
    with contextlib.suppress(Exception):  # No standard error: nowhere to write stacks to.
        faulthandler.register(DUMP_SIGNAL, file=sys.__stderr__, all_threads=True)
    os.set_inheritable(descriptor, False)
    os.write(descriptor, b"step=0 wait=0\n")
    threading.Thread(target=beat, args=(descriptor,), daemon=True, name="tensord").start()
