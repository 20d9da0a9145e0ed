# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite models: each function writes version directories with a model.tflite."""

import shutil
import tempfile
from pathlib import Path

import tensorflow as tf

LITE_DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "float32"]


class Box(tf.Module):
    """Holds a variable."""

    def __init__(self, value):
        super().__init__()
        self.v = tf.Variable(value)


def convert(path, version, signatures, module=None, variables=False):
    """`signatures`: as makers.save takes them."""
    module = module or tf.Module()
    made = {
        name: tf.function(function).get_concrete_function(*specs)
        for name, (function, specs) in signatures.items()
    }
    module.functions = list(made.values())
    folder = tempfile.mkdtemp()
    try:
        tf.saved_model.save(module, folder, signatures=made)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.experimental_enable_resource_variables = variables
        write(path, version, converter.convert())
    finally:
        shutil.rmtree(folder)


def write(path, version, content):
    directory = Path(path) / str(version)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "model.tflite").write_bytes(content)


def one(path, function, *specs, version=1, **options):
    convert(path, version, {"serving_default": (function, specs)}, **options)


def floats(name, shape=(None,)):
    return tf.TensorSpec(shape, tf.float32, name)


def lite_half(path):
    """Version 1: x/2 + 2, beside a SavedModel that says x/2 + 3; version 2: x/2 + 5 alone."""
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": x * 0.5 + 3.0}, input_signature=[floats("x")])
    tf.saved_model.save(module, str(path / "1"), signatures={"serving_default": module.f})
    one(path, lambda x: {"y": x * 0.5 + 2.0}, floats("x"))
    one(path, lambda x: {"y": x * 0.5 + 5.0}, floats("x"), version=2)


def lite_plain(path):
    """Without signatures: its tensors are x and Identity."""
    function = tf.function(lambda x: x * 0.5 + 2.0, input_signature=[floats("x")])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    write(path, 1, converter.convert())


def lite_two(path):
    """Two inputs in another order than that of their names; a second signature."""
    convert(
        path,
        1,
        {
            "serving_default": (
                lambda b, a: {"sum": a + b, "difference": a - b},
                [floats("b"), floats("a")],
            ),
            "twice": (lambda x: {"y": x * 2.0}, [floats("x", (None, 3))]),
        },
    )


def lite_strings(path):
    """Text to itself and whether it is "yes"; numbers to words."""
    words = tf.constant(["no", "yes", "a longer word"])
    text = tf.TensorSpec([None], tf.string, "text")
    convert(
        path,
        1,
        {
            "serving_default": (
                lambda text: {"copy": tf.reshape(text, [-1]), "yes": tf.equal(text, "yes")},
                [text],
            ),
            "words": (
                lambda index: {"word": tf.gather(words, index)},
                [tf.TensorSpec([None], tf.int32, "index")],
            ),
        },
    )


def lite_echo(path):
    """A signature a type: the input itself, and twice beside itself."""

    def echo(x):
        return {"same": tf.identity(x), "twice": tf.concat([x, x], 1)}

    convert(
        path,
        1,
        {d: (echo, [tf.TensorSpec([None, 2], d, "x")]) for d in LITE_DTYPES},
    )


def lite_matrix(path):
    """One row of three numbers, no open dim: times a matrix."""
    matrix = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    one(path, lambda x: {"y": tf.matmul(x, matrix)}, floats("x", (1, 3)))


def lite_counter(path):
    """Adds up what it was given, and says twice as much; `raw` gives the variable itself."""
    module = Box(0.0)
    by = floats("by", ())
    convert(
        path,
        1,
        {
            "serving_default": (lambda by: {"twice": module.v.assign_add(by) * 2.0}, [by]),
            "raw": (lambda by: {"total": module.v.assign_add(by)}, [by]),
        },
        module=module,
        variables=True,
    )


def lite_where(path):
    """An output whose shape depends on values."""
    one(path, lambda x: {"at": tf.where(x > 0.0)}, floats("x"))


LITE_MAKERS = [
    lite_half,
    lite_plain,
    lite_two,
    lite_strings,
    lite_echo,
    lite_matrix,
    lite_counter,
    lite_where,
]
