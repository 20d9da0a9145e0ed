# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What `tensord train` mends in a rank: bounded waits, Keras 3 over machines, steps, stacks.

Each patch waits for the module that it is for, checks that what it replaces looks as expected, says
once what it did, and does nothing otherwise. A failing patch never fails the script.
"""

import contextlib
import faulthandler
import importlib.abc
import importlib.metadata
import os
import signal
import sys
import threading
import time
from importlib.machinery import PathFinder

DUMP_SIGNAL = signal.SIGRTMIN + 6  # As in src/train/agent.cc.
BEAT_SECONDS = 0.5


class Progress:
    """What the launcher hears of this rank. Counters only grow; races lose a count at most."""

    def __init__(self):
        self.steps = 0
        self.wait_seconds = 0.0
        self.graph_wait = None  # A variable that graphs add to: [seconds, calls].

    def waited(self):
        """Seconds spent waiting for input, in Python and in graphs."""
        total = self.wait_seconds
        if self.graph_wait is not None:
            with contextlib.suppress(Exception):  # At the very end TensorFlow may be gone.
                total += float(self.graph_wait.numpy()[0])
        return total


PROGRESS = Progress()


def say(text):
    print(f"tensord: {text}", file=sys.stderr, flush=True)


# ---- Steps ---------------------------------------------------------------------------------------


def beat(descriptor):
    """Tells the launcher about new steps, twice a second."""
    seen, since, waited = -1, time.monotonic(), 0.0
    share = 0.0
    while True:
        steps = PROGRESS.steps
        if steps != seen:
            now, total = time.monotonic(), PROGRESS.waited()
            # The first window holds imports and tracing.
            share = (total - waited) / (now - since) if seen > 0 else 0.0
            since, waited, seen = now, total, steps
            try:
                os.write(descriptor, f"step={steps} wait={min(share, 1.0):.3f}\n".encode())
            except OSError:
                return  # The launcher is gone, and so are we, soon.
        time.sleep(BEAT_SECONDS)


def count_functions(module):
    """Each outermost call of a tf.function is a sign of progress."""
    original = module.Function.__call__
    depth = threading.local()

    def call(self, *args, **kwargs):
        if getattr(depth, "value", 0):
            return original(self, *args, **kwargs)
        depth.value = 1
        try:
            return original(self, *args, **kwargs)
        finally:
            depth.value = 0
            PROGRESS.steps += 1

    module.Function.__call__ = call


def count_schedules(module):
    """A coordinator's closures run elsewhere: scheduling and joining is its progress."""
    original = module.ClusterCoordinator.schedule

    def schedule(self, *args, **kwargs):
        PROGRESS.steps += 1
        return original(self, *args, **kwargs)

    module.ClusterCoordinator.schedule = schedule


# ---- The wait for input --------------------------------------------------------------------------


def measure_input(module):
    for name in ("iterator_get_next", "iterator_get_next_as_optional"):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _timed(original))


def _timed(original):
    def get_next(*args, **kwargs):
        import tensorflow as tf

        if tf.executing_eagerly():
            begin = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                PROGRESS.wait_seconds += time.perf_counter() - begin
        return _timed_in_graph(tf, original, args, kwargs)

    return get_next


def _timed_in_graph(tf, original, args, kwargs):
    if PROGRESS.graph_wait is None:
        # Not tf.Variable: a strategy would make a variable of all ranks of it, and ask them.
        from tensorflow.python.ops.resource_variable_ops import ResourceVariable

        with tf.init_scope(), tf.device("CPU:0"):
            PROGRESS.graph_wait = ResourceVariable(
                tf.zeros(2, tf.float64), trainable=False, name="tensord_input_wait"
            )
    begin = tf.timestamp()
    with tf.control_dependencies([begin]):
        result = original(*args, **kwargs)
    with tf.control_dependencies(result if isinstance(result, list) else [result]):
        end = tf.timestamp()
    one = tf.constant(1.0, tf.float64)
    PROGRESS.graph_wait.assign_add(tf.stack([end - begin, one]), read_value=False)
    # Else the second time may be taken after the work that uses the batch.
    with tf.control_dependencies([end]):
        if isinstance(result, list):
            return [tf.identity(part) for part in result]
        return tf.identity(result)


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


# ---- Keras 3 over machines -----------------------------------------------------------------------


def keras_version():
    return importlib.metadata.version("keras")


def mend_keras(module):
    """fit, evaluate and predict of Keras 3 under MultiWorkerMirroredStrategy."""
    import tensorflow as tf
    from keras.src import tree  # `keras` itself is not whole yet: this runs inside its import.

    trainer = module.TensorFlowTrainer
    wanted = ("_collective_all_reduce_multi_worker", "reduce_per_replica")
    if not all(hasattr(module, name) for name in wanted) or not hasattr(
        trainer, "_maybe_symbolic_build"
    ):
        say(f"Keras {keras_version()} is unknown here: left as it is")
        return
    multi_worker = module._collective_all_reduce_multi_worker
    build_as_shipped = trainer._maybe_symbolic_build
    reduce_as_shipped = module.reduce_per_replica

    def first_local(strategy, value):
        if isinstance(value, tf.distribute.DistributedValues):
            return strategy.experimental_local_results(value)[0]
        return value

    def build(self, iterator=None, data_batch=None):
        strategy = self._distribute_strategy
        if strategy is None or not multi_worker(strategy):
            return build_as_shipped(self, iterator=iterator, data_batch=data_batch)
        if iterator is not None:
            for _, _, batches in iterator:
                data_batch = next(batches)
                break
        # Shapes are all that building needs: no other rank has to be asked.
        data_batch = tree.map_structure(lambda v: first_local(strategy, v), data_batch)
        with strategy.scope():
            self._symbolic_build(data_batch=data_batch)
        return None

    def reduce(values, strategy, reduction):
        if not multi_worker(strategy) or reduction not in ("auto", "mean", "sum"):
            return reduce_as_shipped(values, strategy, reduction)
        how = "SUM" if reduction == "sum" else "MEAN"
        return tree.map_structure(lambda v: strategy.reduce(how, v, axis=None), values)

    trainer._maybe_symbolic_build = build
    module.reduce_per_replica = reduce
    say(f"Keras {keras_version()}: fit, evaluate and predict work over several workers")


def mend_backup(module):
    """BackupAndRestore: every rank its own files, so that none deletes another's."""
    callback = module.BackupAndRestore
    original = callback.__init__
    rank, world = os.environ.get("RANK", "0"), int(os.environ.get("WORLD_SIZE", "1"))
    if world < 2:
        return

    def init(self, backup_dir, *args, **kwargs):
        original(self, os.path.join(backup_dir, f"rank_{rank}"), *args, **kwargs)

    callback.__init__ = init
    say(f"Keras {keras_version()}: BackupAndRestore keeps a folder for each rank")


# ---- Arming --------------------------------------------------------------------------------------

HOOKS = {
    "tensorflow.python.eager.context": bound_waits,
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": count_functions,
    "tensorflow.python.distribute.coordinator.cluster_coordinator": count_schedules,
    "tensorflow.python.ops.gen_dataset_ops": measure_input,
    "keras.src.backend.tensorflow.trainer": mend_keras,
    "keras.src.callbacks.backup_and_restore": mend_backup,
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


def arm():
    descriptor = os.environ.pop("TENSORD_TRAIN_BEAT_FD", "")
    if not descriptor:
        return  # A child of the rank, such as a data worker: not the one that is watched.
    sys.meta_path.insert(0, Finder())
    with contextlib.suppress(Exception):  # No standard error: nowhere to write stacks to.
        faulthandler.register(DUMP_SIGNAL, file=sys.__stderr__, all_threads=True)
    os.set_inheritable(int(descriptor), False)
    os.write(int(descriptor), b"step=0 wait=0\n")
    threading.Thread(target=beat, args=(int(descriptor),), daemon=True, name="tensord").start()
