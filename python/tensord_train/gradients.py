# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients on their way between replicas: fewer bytes, fewer times, scaled against underflow."""

from collections.abc import Sequence
from typing import Any

_WIRE = ("float32", "float16", "bfloat16")


def _check(wire: str) -> None:
    if wire not in _WIRE:
        raise ValueError(f"wire is one of {', '.join(_WIRE)}, not {wire!r}")


def _some(gradients: Sequence[Any], who: str) -> list[Any]:
    """Those that are there; at least one must be, and `gradients` must be a list of them."""
    if hasattr(gradients, "dtype"):
        raise TypeError(f"{who} takes a list of gradients, and got one tensor: write [gradient]")
    present = [g for g in gradients if g is not None]
    if present:
        return present
    got = f"{len(gradients)} that are all None" if gradients else "an empty list"
    raise ValueError(
        f"{who} takes gradients, and got {got}: are there trainable variables (a model has none "
        "before it is built), and does the loss depend on them?"
    )


def all_reduce(gradients: Sequence[Any], wire: str = "float16", mean: bool = False) -> list[Any]:
    """The sum (or mean) of each gradient over all replicas, sent in 16 bits.

    Call it in a replica, that is inside `strategy.run` under `tf.function`. Each is divided by the
    number of replicas before the cast, so that the sum of float16 values cannot overflow where the
    mean does not; the result is in the gradients' own type. None stays None.
    """
    _check(wire)
    given = _some(gradients, "all_reduce")
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync
    present = [tf.convert_to_tensor(g) for g in given]
    for gradient in present:
        if not gradient.dtype.is_floating:
            raise TypeError(
                f"all_reduce takes gradients of floating types, and got {gradient.dtype.name}: "
                "cast it, or leave it out"
            )
    small = [tf.cast(g / replicas, wire) for g in present]
    summed = context.all_reduce(tf.distribute.ReduceOp.SUM, small)
    factor = 1.0 if mean else float(replicas)
    whole = iter(
        [
            tf.cast(s, g.dtype) * tf.cast(factor, g.dtype)
            for s, g in zip(summed, present, strict=True)
        ]
    )
    return [None if g is None else next(whole) for g in gradients]


def all_reduce_bytes(variables: Sequence[Any], wire: str = "float32") -> int:
    """Bytes that a replica sends for one all-reduce of these variables' gradients, as payload."""
    _check(wire)
    each = 4 if wire == "float32" else 2
    return sum(int(v.shape.num_elements()) * each for v in variables)


class GradientAccumulator:
    """Sums k micro-batches' gradients in this replica, so that one all-reduce serves all of them.

    Make it inside `strategy.scope()`. In each replica:

        accumulator.add(gradients)            # k times, nothing is sent
        gradients = accumulator.take(wire)    # one all-reduce; the mean over micro-batches
    """

    def __init__(self, variables: Sequence[Any]):
        import tensorflow as tf

        def local(shape, dtype):
            return tf.Variable(
                tf.zeros(shape, dtype),
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )

        self._sums = [local(v.shape, v.dtype) for v in variables]
        self._count = local([], "float32")

    def add(self, gradients: Sequence[Any]) -> None:
        for total, gradient in zip(self._sums, gradients, strict=True):
            if gradient is not None:
                total.assign_add(gradient)
        self._count.assign_add(1.0)

    def take(self, wire: str = "float32") -> list[Any]:
        """The mean gradient over micro-batches, summed over replicas; starts again from zero."""
        import tensorflow as tf

        count = tf.maximum(tf.identity(self._count), 1.0)
        means = [tf.identity(total) / tf.cast(count, total.dtype) for total in self._sums]
        with tf.control_dependencies(means):
            for total in [*self._sums, self._count]:
                total.assign(tf.zeros(total.shape, total.dtype))
        return all_reduce(means, wire)


class LossScale:
    """A scale that keeps small float16 gradients from vanishing, and learns how large it may be.

    In a replica: `scaled = scale.up(loss)`, `gradients, finite = scale.down(gradients)`, then
    `finite = scale.update(finite)` once a step. Apply the gradients only if `finite`, which all
    replicas agree on.
    """

    def __init__(self, initial: float = 2.0**15, growth_steps: int = 2000):
        import tensorflow as tf

        def kept(value, dtype):
            # All replicas come to the same value: the first one's will do.
            first = tf.VariableAggregation.ONLY_FIRST_REPLICA
            return tf.Variable(value, trainable=False, dtype=dtype, aggregation=first)

        self._scale = kept(initial, "float32")
        self._good = kept(0, "int64")
        self._growth_steps = growth_steps

    @property
    def value(self) -> float:
        return float(self._scale.numpy())

    def up(self, loss: Any) -> Any:
        import tensorflow as tf

        return loss * tf.cast(self._scale, loss.dtype)

    def down(self, gradients: Sequence[Any]) -> tuple[list[Any], Any]:
        _some(gradients, "LossScale.down")
        import tensorflow as tf

        down = [None if g is None else tf.cast(g, "float32") / self._scale for g in gradients]
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in down if g is not None])
        return down, finite

    def update(self, finite: Any) -> Any:
        """Halves after an overflow anywhere, doubles after `growth_steps` good steps."""
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        good_ones = context.all_reduce("SUM", tf.cast(finite, "float32"))
        finite = good_ones > context.num_replicas_in_sync - 0.5
        good = tf.where(finite, self._good + 1, tf.zeros_like(self._good))
        grow = good >= self._growth_steps
        scale = tf.where(grow, self._scale * 2.0, self._scale)
        self._scale.assign(tf.where(finite, scale, tf.maximum(self._scale / 2.0, 1.0)))
        self._good.assign(tf.where(grow, tf.zeros_like(good), good))
        return finite
