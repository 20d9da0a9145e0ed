# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""One function a model: each writes version directories below the path it is given."""

import itertools
import random

import numpy as np
import tensorflow as tf
from bench_names import BODIES, SMALL

SEED = 7
FLOAT = tf.float32
INT = tf.int32


def save(path, function, *specs, module=None, version=1):
    module = module or tf.Module()
    concrete = tf.function(function).get_concrete_function(*specs)
    module.function = concrete
    tf.saved_model.save(module, str(path / str(version)), signatures=concrete)


def weights(generator, *shape):
    scale = 1 / np.sqrt(shape[0])
    return tf.Variable(generator.normal(0, scale, shape).astype(np.float32))


def identity(path):
    save(path, lambda x: {"y": tf.identity(x)}, tf.TensorSpec([None, 16], FLOAT, "x"))


def image_in(path):
    spec = tf.TensorSpec([None, 224, 224, 3], FLOAT, "image")
    save(path, lambda image: {"y": image[:, 0, 0, :]}, spec)


def megabyte_out(path):
    # Not a constant: the session would fold it away.
    spec = tf.TensorSpec([None, 1], FLOAT, "x")
    save(path, lambda x: {"y": tf.tile(x, [1, 1 << 18])}, spec)


def burn(path):
    """A few milliseconds of work a row, no matter how many rows run together."""

    def function(x):
        y = tf.tile(x, [1, 1 << 12])
        for _ in range(60):
            y = tf.sin(y) + tf.cos(y)
        return {"y": tf.reduce_sum(y, 1)}

    save(path, function, tf.TensorSpec([None, 16], FLOAT, "x"))


def layers_of(sizes, seed):
    generator = np.random.default_rng(seed)
    return [weights(generator, *pair) for pair in itertools.pairwise(sizes)]


def through(layers, x):
    for layer in layers[:-1]:
        x = tf.nn.relu(tf.matmul(x, layer))
    return tf.matmul(x, layers[-1])


def mlp(path, seed=SEED, version=1):
    module = tf.Module()
    module.layers = layers_of([64, 128, 64, 10], seed)
    spec = tf.TensorSpec([None, 64], FLOAT, "x")
    save(
        path,
        lambda x: {"y": tf.nn.softmax(through(module.layers, x))},
        spec,
        module=module,
        version=version,
    )


def small(path, seed):
    for version in (1, 2):
        mlp(path, seed=1000 * version + seed, version=version)


def wide_deep(path):
    """26 categories of 10,000 values, embedded in 16 dims; 13 numbers; two deep layers."""
    generator = np.random.default_rng(SEED)
    module = tf.Module()
    module.embedding = weights(generator, 26 * 10_000, 16)
    module.wide = weights(generator, 26 * 10_000, 1)
    module.layers = layers_of([26 * 16 + 13, 256, 128, 1], SEED)
    offsets = tf.constant(np.arange(26) * 10_000, INT)

    def function(categories, numbers):
        rows = categories + offsets
        deep = tf.reshape(tf.gather(module.embedding, rows), [-1, 26 * 16])
        deep = through(module.layers, tf.concat([deep, numbers], 1))
        wide = tf.reduce_sum(tf.gather(module.wide, rows), 1)
        return {"probability": tf.sigmoid(deep + wide)}

    categories = tf.TensorSpec([None, 26], INT, "categories")
    numbers = tf.TensorSpec([None, 13], FLOAT, "numbers")
    save(path, function, categories, numbers, module=module)


def application(path, make):
    import keras

    keras.utils.set_random_seed(SEED)
    model = make(keras.applications)
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = tf.TensorSpec([None, 224, 224, 3], FLOAT, "image")
    archive.add_endpoint(
        "serve", lambda image: {"scores": model(image, training=False)}, input_signature=[spec]
    )
    archive.write_out(str(path / "1"), verbose=False)


def mobilenet(path):
    application(path, lambda applications: applications.MobileNetV2(weights=None))


def resnet50(path):
    application(path, lambda applications: applications.ResNet50(weights=None))


class Bert(tf.Module):
    """BERT-base's encoder: 12 layers, 768 wide, 12 heads; pooled from the first token."""

    WIDTH, HEADS, LAYERS, TOKENS, WORDS = 768, 12, 12, 128, 30_522

    def __init__(self):
        super().__init__()
        generator = np.random.default_rng(SEED)
        width = self.WIDTH
        self.words = weights(generator, self.WORDS, width)
        self.places = weights(generator, self.TOKENS, width)
        self.blocks = [
            {
                "qkv": weights(generator, width, 3 * width),
                "out": weights(generator, width, width),
                "up": weights(generator, width, 4 * width),
                "down": weights(generator, 4 * width, width),
                "gain": [tf.Variable(tf.ones([width])) for _ in range(2)],
                "bias": [tf.Variable(tf.zeros([width])) for _ in range(2)],
            }
            for _ in range(self.LAYERS)
        ]
        self.pool = weights(generator, width, width)

    @staticmethod
    def norm(x, gain, bias):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-12) * gain + bias

    def attend(self, x, block, mask):
        head = self.WIDTH // self.HEADS

        def heads(part):
            part = tf.reshape(part, [-1, self.TOKENS, self.HEADS, head])
            return tf.transpose(part, [0, 2, 1, 3])

        query, keys, values = (heads(p) for p in tf.split(tf.matmul(x, block["qkv"]), 3, -1))
        scores = tf.matmul(query, keys, transpose_b=True) / np.sqrt(head) + mask
        mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [0, 2, 1, 3])
        return tf.matmul(tf.reshape(mixed, [-1, self.TOKENS, self.WIDTH]), block["out"])

    def encode(self, ids, mask):
        x = tf.gather(self.words, ids) + self.places
        shade = (1.0 - tf.cast(mask, FLOAT))[:, tf.newaxis, tf.newaxis, :] * -1e4
        for block in self.blocks:
            x = self.norm(x + self.attend(x, block, shade), block["gain"][0], block["bias"][0])
            deep = tf.matmul(tf.nn.gelu(tf.matmul(x, block["up"]), approximate=True), block["down"])
            x = self.norm(x + deep, block["gain"][1], block["bias"][1])
        return tf.tanh(tf.matmul(x[:, 0, :], self.pool))


def bert(path):
    module = Bert()
    ids = tf.TensorSpec([None, Bert.TOKENS], INT, "input_ids")
    mask = tf.TensorSpec([None, Bert.TOKENS], INT, "input_mask")
    save(
        path,
        lambda input_ids, input_mask: {"pooled": module.encode(input_ids, input_mask)},
        ids,
        mask,
        module=module,
    )


def two_gigabytes(path):
    """Eight variables of 256 MB, all read by each run's first row."""
    generator = np.random.default_rng(SEED)
    module = tf.Module()
    module.parts = [
        tf.Variable(generator.random((1 << 20, 64), dtype=np.float32)) for _ in range(8)
    ]
    spec = tf.TensorSpec([None, 64], FLOAT, "x")
    save(path, lambda x: {"y": x + sum(part[0] for part in module.parts)}, spec, module=module)


def bodies(path):
    """image.json: 1.7 MB, one image as Python prints floats of 8 digits."""
    generator = random.Random(SEED)
    rows = (
        "[" + ", ".join(f"[{', '.join(pixel(generator))}]" for _ in range(224)) + "]"
        for _ in range(224)
    )
    (path / "image.json").write_text('{"instances": [[' + ", ".join(rows) + "]]}")


def pixel(generator):
    return [f"{generator.random():.8f}" for _ in range(3)]


def maker_of(name):
    if name in SMALL:
        return lambda path: small(path, SMALL.index(name))
    return {BODIES: bodies}.get(name) or globals()[name]
