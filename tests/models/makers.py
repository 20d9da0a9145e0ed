# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""One function a model: each writes version directories below the path it is given."""

import contextlib
import itertools

import numpy as np
import tensorflow as tf
from lite_makers import LITE_MAKERS

OP_LIBRARY = None  # Set by make_models.py before the first maker runs.

ECHO_DTYPES = [
    tf.bool,
    tf.int8,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.uint8,
    tf.uint16,
    tf.uint32,
    tf.uint64,
    tf.half,
    tf.bfloat16,
    tf.float32,
    tf.float64,
    tf.complex64,
    tf.complex128,
    tf.string,
]


def vector(dtype, name):
    return tf.TensorSpec([None], dtype, name)


def save(path, version, signatures, module=None):
    """`signatures`: name to (python function, its TensorSpecs). The function returns a dict."""
    module = module or tf.Module()
    made = {
        name: tf.function(function).get_concrete_function(*specs)
        for name, (function, specs) in signatures.items()
    }
    # Signatures hold on to the functions' variables by the module alone.
    module.functions = list(made.values())
    tf.saved_model.save(module, str(path / str(version)), signatures=made)


def one(path, function, *specs, version=1, module=None):
    save(path, version, {"serving_default": (function, specs)}, module)


def half_plus_two(path):
    """The classic, made the TensorFlow 1 way: y = x/2 + 2, y2 = x/2 + 3, y3 = x2 + 3."""
    v1 = tf.compat.v1
    graph = v1.Graph()
    with graph.as_default(), v1.Session(graph=graph) as session:
        a = v1.get_variable("a", initializer=0.5)
        b = v1.get_variable("b", initializer=2.0)
        c = v1.get_variable("c", initializer=3.0)
        serialized = v1.placeholder(tf.string, [None], name="tf_example")
        features = {
            "x": v1.FixedLenFeature([1], tf.float32),
            "x2": v1.FixedLenFeature([1], tf.float32, default_value=[0.0]),
        }
        parsed = v1.parse_example(serialized, features)
        x = tf.identity(parsed["x"], name="x")
        y = tf.add(tf.multiply(a, x), b, name="y")
        y2 = tf.add(tf.multiply(a, x), c, name="y2")
        y3 = tf.add(parsed["x2"], c, name="y3")
        asset = path / "foo.txt"
        asset.write_text("asset-file-contents")
        v1.add_to_collection(
            v1.GraphKeys.ASSET_FILEPATHS, v1.constant(str(asset), name="asset_path")
        )
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(path / "00000123"))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signature_def_map=half_plus_two_signatures(serialized, x, y, y2, y3),
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
        )
        builder.save()
        asset.unlink()


def half_plus_two_signatures(serialized, x, y, y2, y3):
    v1 = tf.compat.v1
    info = v1.saved_model.build_tensor_info
    build = v1.saved_model.build_signature_def

    def of(inputs, outputs, method):
        return build(
            {k: info(t) for k, t in inputs.items()},
            {k: info(t) for k, t in outputs.items()},
            f"tensorflow/serving/{method}",
        )

    return {
        "serving_default": of({"x": x}, {"y": y}, "predict"),
        "regress_x_to_y": of({"inputs": serialized}, {"outputs": y}, "regress"),
        "regress_x_to_y2": of({"inputs": serialized}, {"outputs": y2}, "regress"),
        "regress_x2_to_y3": of({"inputs": serialized}, {"outputs": y3}, "regress"),
        "classify_x_to_y": of({"inputs": serialized}, {"scores": y}, "classify"),
    }


def examples(path):
    """Signatures over one tensor of tf.Examples: name to outputs and declared method."""
    v1 = tf.compat.v1
    graph = v1.Graph()
    with graph.as_default(), v1.Session(graph=graph) as session:
        serialized = v1.placeholder(tf.string, [None], name="tf_example")
        features = {
            "x": v1.FixedLenFeature([1], tf.float32, default_value=[0.0]),
            "shared": v1.FixedLenFeature([1], tf.float32, default_value=[0.0]),
            "n": v1.FixedLenFeature([1], tf.int64, default_value=[0]),
            "word": v1.FixedLenFeature([1], tf.string, default_value=[b""]),
        }
        signatures = example_signatures(serialized, v1.parse_example(serialized, features))
        builder = v1.saved_model.Builder(str(path / "1"))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        builder.save()


def example_signatures(serialized, parsed):
    v1 = tf.compat.v1
    x, shared, word = parsed["x"], parsed["shared"], parsed["word"]
    scores = tf.concat([x, shared], 1)
    classes = tf.concat([word, tf.strings.join([word, "?"])], 1)
    flat = tf.squeeze(x + shared, 1)
    number = tf.cast(parsed["n"], tf.float32)
    other = v1.placeholder(tf.string, [None], name="other")
    one = {"inputs": serialized}
    table = {
        "serving_default": (one, {"classes": classes, "scores": scores}, "classify"),
        "classes_only": (one, {"classes": classes}, "classify"),
        "scores_only": (one, {"scores": scores}, "classify"),
        "scores_and_more": (one, {"scores": scores, "more": flat}, "classify"),
        "scores_of_rank_1": (one, {"scores": flat}, "classify"),
        "scores_of_int64": (one, {"scores": parsed["n"]}, "classify"),
        "scores_of_other_rows": (one, {"scores": tf.concat([x, x], 0)}, "classify"),
        "classes_of_rank_1": (one, {"classes": tf.squeeze(word, 1)}, "classify"),
        "classes_of_floats": (one, {"classes": x}, "classify"),
        "classes_of_other_rows": (one, {"classes": tf.concat([word, word], 0)}, "classify"),
        "widths_differ": (one, {"classes": classes, "scores": x}, "classify"),
        "bytes": (one, {"classes": tf.fill(tf.shape(x), b"\xff\xfe")}, "classify"),
        "three_outputs": (one, {"classes": classes, "scores": x, "c": x}, "classify"),
        "no_classes": (one, {"y": x}, "classify"),
        "named_x": ({"x": serialized}, {"scores": x, "outputs": x}, "classify"),
        "two_inputs": ({"inputs": serialized, "b": other}, {"scores": x}, "classify"),
        "regress": (one, {"outputs": flat}, "regress"),
        "regress_column": (one, {"outputs": x + shared}, "regress"),
        "regress_number": (one, {"outputs": number}, "regress"),
        "regress_wide": (one, {"outputs": scores}, "regress"),
        "regress_int64": (one, {"outputs": tf.squeeze(parsed["n"], 1)}, "regress"),
        "regress_other_rows": (one, {"outputs": tf.concat([flat, flat], 0)}, "regress"),
        "regress_scalar": (one, {"outputs": tf.reduce_sum(x)}, "regress"),
        "regress_named_y": (one, {"y": flat}, "regress"),
        "regress_two": (one, {"outputs": flat, "more": flat}, "regress"),
        "regress_of_x": ({"x": serialized}, {"outputs": flat}, "regress"),
        "regress_elsewhere": (
            {"inputs": other},
            {"outputs": tf.strings.to_number(other)},
            "regress",
        ),
        "regress_floats": ({"inputs": x}, {"outputs": x}, "regress"),
        "unusual": (one, {"outputs": flat}, "unusual"),
    }
    info = v1.saved_model.build_tensor_info
    return {
        name: v1.saved_model.build_signature_def(
            {k: info(t) for k, t in inputs.items()},
            {k: info(t) for k, t in outputs.items()},
            f"tensorflow/serving/{method}",
        )
        for name, (inputs, outputs, method) in table.items()
    }


def half(path):
    for version, addend in ((1, 2.0), (2, 3.0), (3, 2.0)):
        module = tf.Module()
        module.a = tf.Variable(0.5)
        module.b = tf.Variable(addend)
        one(path, line_of(module), vector(tf.float32, "x"), version=version, module=module)


def line_of(module):
    return lambda x: {"y": module.a * x + module.b}


def keras_mlp(path):
    import keras

    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((4,), name="features"),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.Dense(3, activation="softmax", name="classes"),
        ]
    )
    model.export(str(path / "1"), verbose=False)


def two_in(path):
    def function(a, b):
        return {"sum": a + b, "difference": a - b}

    one(path, function, vector(tf.float32, "a"), vector(tf.float32, "b"))


def strings(path):
    def function(s):
        return {
            "echo": tf.identity(s),
            "echo_bytes": tf.identity(s),
            "upper": tf.strings.upper(s),
            "length": tf.strings.length(s),
        }

    one(path, function, vector(tf.string, "s"))


def lookup(path):
    vocabulary = path / "vocabulary.txt"
    vocabulary.write_text("apple\nbanana\ncherry\n")
    module = tf.Module()
    module.asset = tf.saved_model.Asset(str(vocabulary))
    initializer = tf.lookup.TextFileInitializer(
        module.asset,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    module.table = tf.lookup.StaticHashTable(initializer, -1)
    one(
        path,
        lambda word: {"id": module.table.lookup(word)},
        vector(tf.string, "word"),
        module=module,
    )
    vocabulary.unlink()


def counter(path):
    module = tf.Module()
    module.count = tf.Variable(0.0, name="counter")
    step = tf.TensorSpec([], tf.float32, "delta")
    signatures = {
        "get_counter": (lambda: {"output": module.count.read_value()}, ()),
        "incr_counter": (lambda: {"output": module.count.assign_add(1.0)}, ()),
        "incr_counter_by": (lambda delta: {"output": module.count.assign_add(delta)}, (step,)),
        "reset_counter": (lambda: {"output": module.count.assign(0.0)}, ()),
    }
    save(path, 1, signatures, module)


def echo(path):
    signatures = {
        dtype.name: (lambda x: {"y": tf.identity(x)}, (tf.TensorSpec(None, dtype, "x"),))
        for dtype in ECHO_DTYPES
    }
    signatures["serving_default"] = signatures["float32"]
    save(path, 1, signatures)


def mixed(path):
    """What REST has to tell apart: signatures of several inputs of any shape, or of none."""

    def open_inputs(**dtypes):
        return [tf.TensorSpec(None, dtype, name) for name, dtype in dtypes.items()]

    def copies(**inputs):
        return {f"{name}_out": tf.identity(value) for name, value in inputs.items()}

    text = open_inputs(s=tf.string)
    number = open_inputs(i=tf.int32)
    floats = open_inputs(f=tf.float32)
    signatures = {
        "four": (
            lambda d, f, i, s: copies(d=d, f=f, i=i, s=s),
            open_inputs(d=tf.float64, f=tf.float32, i=tf.int32, s=tf.string),
        ),
        "three": (
            lambda b, i, s: copies(b=b, i=i, s=s),
            open_inputs(b=tf.string, i=tf.int32, s=tf.string),
        ),
        "two": (lambda i, f: copies(f=f, i=i), open_inputs(i=tf.int32, f=tf.float32)),
        "none": (lambda: {"y": tf.constant([1.5, 2.5])}, ()),
        "bytes": (lambda s: {"tok": tf.identity(s), "tok_bytes": tf.identity(s)}, text),
        "bytes_only": (lambda s: {"tok_bytes": tf.identity(s)}, text),
        "one_int": (lambda i: {"y": tf.identity(i)}, number),
        "one_float": (lambda f: {"y": tf.identity(f)}, floats),
        "one_string": (lambda s: {"y": tf.identity(s)}, text),
        "complex": (lambda f: {"y": tf.complex(f, f)}, floats),
        "rows_differ": (
            lambda i: {"a": tf.identity(i), "b": tf.concat([i, i], 0)},
            [vector(tf.int32, "i")],
        ),
        "empty": (lambda i: {"a": i[:0], "b": i[:0]}, [vector(tf.int32, "i")]),
        "five": (
            lambda i: {
                "bool": tf.cast(i, tf.bool),
                "double": tf.cast(i, tf.float64) / 3,
                "grid": tf.stack([i, i * 2], 1),
                "int64": tf.cast(i, tf.int64) * 10**10,
                "text": tf.strings.as_string(i),
            },
            [vector(tf.int32, "i")],
        ),
    }
    save(path, 1, signatures)


def odd(path):
    numbers = [np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-07, 1e10, 0.2, 3.4e38]

    def function(x):
        return {"y": tf.tile(tf.constant([numbers], tf.float32), [tf.size(x), 1])}

    one(path, function, vector(tf.float32, "x"))


def const_out(path):
    def function(keys):
        return {"keys": tf.identity(keys), "constant": tf.constant([1.5, 2.5])}

    one(path, function, tf.TensorSpec([None, 1], tf.int32, "keys"))


def scalar_out(path):
    one(path, lambda x: {"sum": tf.reduce_sum(x)}, vector(tf.float32, "x"))


def seqsum(path):
    def function(x):
        return {"sum": tf.reduce_sum(x, 1), "mean": tf.reduce_mean(x, 1)}

    one(path, function, tf.TensorSpec([None, None], tf.float32, "x"))


def coupled(path):
    functions = {
        "sorted": tf.sort,
        "centred": lambda x: x - tf.reduce_mean(x),
        "share": tf.nn.softmax,
        "positive": lambda x: tf.cond(tf.reduce_any(x > 100), lambda: x * 0, lambda: x),
        "apart": lambda x: x / 2 + 2,
    }

    def answering(function):
        return tf.function(lambda x: {"y": function(x)}, input_signature=[vector(tf.float32, "x")])

    module = tf.Module()
    signatures = {name: answering(function) for name, function in functions.items()}
    module.kept = list(signatures.values())
    tf.saved_model.save(module, str(path / "1"), signatures=signatures)


def rank2(path):
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)
    one(path, lambda x: {"y": tf.matmul(x, weights)}, tf.TensorSpec([None, 3], tf.float32, "x"))


def defaults(path):
    """y = a * scale + offset, where scale defaults to 10 and offset to 1 for each row."""
    from tensorflow.core.protobuf import saved_model_pb2

    def function(a, scale, offset):
        return {"y": a * scale + offset}

    scalar = tf.TensorSpec([], tf.float32, "scale")
    one(path, function, vector(tf.float32, "a"), scalar, tf.TensorSpec([], tf.float32, "offset"))
    file = path / "1" / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    values = saved.meta_graphs[0].signature_def["serving_default"].defaults
    values["scale"].CopyFrom(tf.make_tensor_proto(10.0, tf.float32))
    values["offset"].CopyFrom(tf.make_tensor_proto(1.0, tf.float32))
    file.write_bytes(saved.SerializeToString())


def slow_ms(path):
    """Spins in a loop of ops: busy, and a run that TensorFlow itself could interrupt."""

    def function(ms):
        longest = tf.cast(tf.reduce_max(tf.concat([ms, [0]], 0)), tf.float64)
        end = tf.timestamp() + longest / 1000.0
        turns = tf.while_loop(
            lambda now, _: now < end,
            lambda _, turns: (tf.timestamp(), turns + 1),
            (tf.timestamp(), tf.constant(0)),
        )[1]
        with tf.control_dependencies([turns]):
            return {"ms": tf.identity(ms)}

    one(path, function, vector(tf.int32, "ms"))


def probe_op(what, argument):
    return tf.load_op_library(str(OP_LIBRARY)).tensord_probe(what=what, argument=argument)


def sleep_ms(path):
    """Waits asleep, so that many may wait at once on few cores. Cancelled by nothing."""

    def function(ms):
        done = probe_op(tf.fill(tf.shape(ms), "sleep"), tf.strings.as_string(ms))
        with tf.control_dependencies([done]):
            return {"ms": tf.identity(ms)}

    one(path, function, vector(tf.int32, "ms"))


def probe(path):
    def function(what, argument):
        return {"answer": probe_op(what, argument)}

    one(path, function, vector(tf.string, "what"), vector(tf.string, "argument"))


def fill(path):
    """A few bytes in, dims[0] x dims[1] floats out."""

    def function(dims):
        rows, columns = dims[0], dims[1]
        return {"y": tf.fill([rows, columns], 1.0)}

    one(path, function, tf.TensorSpec([2], tf.int32, "dims"))


def files(path):
    """What a model file can do when nothing holds it: read and write what it likes."""
    name = tf.TensorSpec([], tf.string, "path")
    text = tf.TensorSpec([], tf.string, "text")

    def write(path, text):
        with tf.control_dependencies([tf.io.write_file(path, text)]):
            return {"written": tf.strings.length(text)}

    signatures = {
        "serving_default": (lambda path: {"text": tf.io.read_file(path)}, (name,)),
        "write": (write, (name, text)),
    }
    save(path, 1, signatures)


def composite(path):
    """As TensorFlow 1 exports them; TensorFlow 2 takes composite inputs apart by itself. Besides,
    outputs that no answer can carry, each beside one that can."""
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        sparse = v1.sparse_placeholder(tf.float32, [None, 3], name="sparse")
        ragged = v1.ragged.placeholder(tf.float32, 1, [], name="ragged")
        resource = v1.placeholder(tf.resource, [], name="resource")
        y = tf.multiply(x, 2.0, name="y")
        outputs = {
            "serving_default": ({"x": x}, y),
            "sparse": ({"s": sparse}, tf.sparse.reduce_sum(sparse, 1)),
            "ragged": ({"r": ragged}, ragged.row_lengths()),
            "resource": ({"h": resource}, y),
        }
        beside = {
            "variant": v1.raw_ops.TensorListFromTensor(
                tensor=x, element_shape=tf.constant([], tf.int32)
            ),
            "deep": tf.reshape(x, [-1] + 8 * [1]),
            "untyped": tf.identity(y),
            "lied": tf.cast(y, tf.int32),
        }
        info = v1.saved_model.build_tensor_info
        signatures = {
            name: v1.saved_model.build_signature_def(
                {k: info(t) for k, t in inputs.items()},
                {"y": info(output)},
                "tensorflow/serving/predict",
            )
            for name, (inputs, output) in outputs.items()
        }
        for name, output in beside.items():
            signature = signatures[f"{name}_beside"] = type(signatures["sparse"])()
            signature.CopyFrom(signatures["serving_default"])
            signature.outputs[name].CopyFrom(info(output))
        signatures["lied_beside"].outputs["lied"].dtype = tf.float32.as_datatype_enum
        builder = v1.saved_model.Builder(str(path / "1"))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        builder.save()
    with edited(path) as graph:  # No builder of today's lets this through.
        graph.signature_def["untyped_beside"].outputs["untyped"].dtype = 0


@contextlib.contextmanager
def edited(path):
    """The model's one MetaGraphDef, written back behind the block."""
    from tensorflow.core.protobuf import saved_model_pb2

    file = path / "1" / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    yield saved.meta_graphs[0]
    file.write_bytes(saved.SerializeToString())


def text_op(path):
    """An identity whose op is renamed in the file: nothing here knows tensorflow-text's."""
    one(path, lambda x: {"y": tf.identity(x)}, vector(tf.float32, "x"))
    with edited(path) as meta_graph:
        graph = meta_graph.graph_def
        for node in [*graph.node, *(n for f in graph.library.function for n in f.node_def)]:
            if node.op == "Identity":
                node.op = "TFText>RoundRobinTrim"


def big(path, megabytes):
    """Ones in variables of 8 MB each; the answer is x times the number of megabytes."""
    module = tf.Module()
    eight, rest = divmod(megabytes, 8)
    sizes = [8] * eight + ([rest] if rest else [])
    module.parts = [tf.Variable(tf.ones([mb, 1 << 18])) for mb in sizes]

    def function(x):
        # One number of each part: the run is cheap, and the memory stays in use.
        return {
            "y": x
            * tf.add_n([part[0, 0] * tf.cast(part.shape[0], tf.float32) for part in module.parts])
        }

    one(path, function, vector(tf.float32, "x"), module=module)


def bench_identity(path):
    one(path, lambda x: {"y": tf.identity(x)}, tf.TensorSpec([None, 16], tf.float32, "x"))


def bench_image(path):
    """224 x 224 x 3 floats (602,112 bytes) in, three out: the transport is the work."""
    spec = tf.TensorSpec([None, 224, 224, 3], tf.float32, "image")
    one(path, lambda image: {"y": image[:, 0, 0, :]}, spec)


def convolutions(path):
    random = np.random.default_rng(11)
    channels = [3, 32, 64, 64]
    module = tf.Module()
    module.kernels = [
        tf.Variable(random.normal(0, 0.1, (3, 3, a, b)).astype(np.float32))
        for a, b in itertools.pairwise(channels)
    ]

    def layers(image):
        x = image
        for kernel in module.kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"))
        return {"y": tf.reduce_mean(x, [1, 2])}

    one(path, layers, tf.TensorSpec([None, 96, 96, 3], tf.float32, "image"), module=module)


def jitted(path):
    bench_mlp(path, compiled=True)


def bench_mlp(path, compiled=False):
    random = np.random.default_rng(7)
    module = tf.Module()
    sizes = [64, 128, 64, 10]
    module.weights = [
        tf.Variable(random.normal(0, 0.1, pair).astype(np.float32))
        for pair in itertools.pairwise(sizes)
    ]

    def layers(x):
        for weights in module.weights[:-1]:
            x = tf.nn.relu(tf.matmul(x, weights))
        return tf.nn.softmax(tf.matmul(x, module.weights[-1]))

    if compiled:
        layers = tf.function(layers, jit_compile=True)

    def function(x):
        return {"y": layers(x)}

    one(path, function, tf.TensorSpec([None, 64], tf.float32, "x"), module=module)


MAKERS = {
    maker.__name__: maker
    for maker in (
        half_plus_two,
        half,
        keras_mlp,
        two_in,
        strings,
        lookup,
        counter,
        echo,
        mixed,
        odd,
        const_out,
        scalar_out,
        seqsum,
        coupled,
        rank2,
        examples,
        defaults,
        slow_ms,
        sleep_ms,
        fill,
        files,
        probe,
        composite,
        text_op,
        jitted,
        convolutions,
        bench_identity,
        bench_image,
        bench_mlp,
        *LITE_MAKERS,
    )
}
