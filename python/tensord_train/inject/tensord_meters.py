# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What a rank's time goes into: steps, the wait for input and its slow stage, exchange with others.

Counters are read from another thread while the script runs, so they only grow.
"""

import contextlib
import sys
import threading
import time
import weakref

ITERATORS_KEPT = 16  # Of those that live: one for training, one for validation, and some more.


class Progress:
    """What the launcher hears of this rank. Races lose a count at most."""

    def __init__(self):
        self.steps = 0
        self.wait_seconds = 0.0
        self.graph_wait = None  # A variable that graphs add to: [seconds, calls].
        self.exchange_seconds = 0.0
        self.exchange_bytes = 0.0
        self.graph_exchange = None  # As above: [seconds, bytes, when the last one ended].

    def waited(self):
        """Seconds spent waiting for input, in Python and in graphs."""
        return self.wait_seconds + in_graph(self.graph_wait, 0)

    def exchanged(self):
        """Seconds in which this rank exchanged with the others, or waited for them, and bytes."""
        seconds = self.exchange_seconds + in_graph(self.graph_exchange, 0)
        return seconds, self.exchange_bytes + in_graph(self.graph_exchange, 1)


def in_graph(variable, index):
    if variable is not None:
        with contextlib.suppress(Exception):  # At the very end TensorFlow may be gone.
            return float(variable.numpy()[index])
    return 0.0


PROGRESS = Progress()


# ---- Steps ---------------------------------------------------------------------------------------


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


def counter(tf, size, name):
    """A variable of this rank alone, that graphs of any strategy may add to."""
    # Not tf.Variable: a strategy would make a variable of all ranks of it, and ask them.
    from tensorflow.python.ops.resource_variable_ops import ResourceVariable

    with tf.init_scope(), tf.device("CPU:0"):
        return ResourceVariable(tf.zeros(size, tf.float64), trainable=False, name=name)


def measure_input(module):
    if getattr(module, "tensord_measures", False):
        return
    module.tensord_measures = True
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
        PROGRESS.graph_wait = counter(tf, 2, "tensord_input_wait")
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


# ---- The slow stage ------------------------------------------------------------------------------


class Pipelines:
    """The iterators that live. TensorFlow's own model of each has the time of every stage."""

    def __init__(self):
        self._alive = []
        self._lock = threading.Lock()

    def watch(self, module):
        original = module.OwnedIterator._create_iterator

        def create(iterator, dataset):
            original(iterator, dataset)
            if hasattr(iterator._iterator_resource, "numpy"):  # Not one inside a graph.
                self._add(iterator)

        module.OwnedIterator._create_iterator = create

    def _add(self, iterator):
        with self._lock:
            alive = [pair for pair in self._alive if pair[0]() is not None]
            self._alive = [*alive, (weakref.ref(iterator), {})][-ITERATORS_KEPT:]

    def slowest_stage(self):
        """Its name and its part of all stages' time since the last call; "" when nothing came."""
        ask = sys.modules["tensorflow"].data.experimental.get_model_proto
        with self._lock:
            alive = list(self._alive)
        all_spent = {}
        for reference, before in alive:
            iterator = reference()
            if iterator is None:
                continue
            for node in ask(iterator).nodes.values():
                spent = max(0, node.processing_time - before.get(node.id, 0))
                before[node.id] = node.processing_time
                name = stage_name(node)
                all_spent[name] = all_spent.get(name, 0) + spent
        total = sum(all_spent.values())
        if total <= 0:
            return "", 0.0
        name = max(all_spent, key=all_spent.get)
        return name, all_spent[name] / total


def stage_name(node):
    """ "ParallelMap" of "ParallelMapV2"; "Map" of one that only seems to be parallel."""
    name = "".join(c for c in node.name if c.isalnum())[:32]
    head, _, version = name.rpartition("V")
    if head and version.isdigit():
        name = head
    if "Map" in name and name != "FlatMap":
        for parameter in node.parameters:
            # A map that was not parallel is made MapAndBatch with one thread.
            if parameter.name == "parallelism" and not parameter.tunable and parameter.value <= 1:
                return "Map"
    return name


PIPELINES = Pipelines()


# ---- Exchange between ranks ----------------------------------------------------------------------


def measure_exchange(module):
    """All-reduces: their seconds, the wait for the slowest rank with them, and their bytes."""
    for name in ("collective_reduce_v2", "collective_reduce_v3"):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _timed_reduce(original))


def _timed_reduce(original):
    def reduce(*args, **kwargs):
        import tensorflow as tf
        from tensorflow.python.ops import control_flow_util

        value = args[0] if args else kwargs["input"]
        if tf.executing_eagerly():
            begin = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                PROGRESS.exchange_seconds += time.perf_counter() - begin
                PROGRESS.exchange_bytes += value.dtype.size * value.shape.num_elements()
        graph = tf.compat.v1.get_default_graph()
        if control_flow_util.GraphOrParentsInXlaContext(graph):
            return original(*args, **kwargs)  # XLA knows no time of day.
        return _timed_reduce_in_graph(tf, original, value, args, kwargs)

    return reduce


def _time_of_its_own(tf):
    """The time, read whenever its control inputs are done.

    A function runs its stateful ops one after the other, readings of the clock among them. One
    replica's exchange would then begin when that of the replica before it ended, which waits for
    all of them: several replicas in a rank would wait forever.
    """
    now = tf.timestamp()
    manager = getattr(now.graph, "experimental_acd_manager", None)
    if manager is not None:
        manager.run_independently(now.op)
    return now


def _timed_reduce_in_graph(tf, original, value, args, kwargs):
    if PROGRESS.graph_exchange is None:
        PROGRESS.graph_exchange = counter(tf, 3, "tensord_exchange")
    with tf.control_dependencies([value]), tf.device("CPU:0"):
        begin = _time_of_its_own(tf)
    with tf.control_dependencies([begin]):
        result = original(*args, **kwargs)
    with tf.control_dependencies([result]), tf.device("CPU:0"):
        end = _time_of_its_own(tf)
    elements = tf.size(value, tf.int64)  # Where the value is: it must not be copied for that.
    with tf.control_dependencies([end]), tf.device("CPU:0"):
        seconds, moved, last = tf.unstack(PROGRESS.graph_exchange.read_value(), 3)
        # Those side by side are counted once.
        seconds += tf.maximum(end - tf.maximum(begin, last), 0.0)
        moved += tf.cast(elements * value.dtype.size, tf.float64)
        PROGRESS.graph_exchange.assign(tf.stack([seconds, moved, end]), read_value=False)
    with tf.control_dependencies([end]):
        return tf.identity(result)
