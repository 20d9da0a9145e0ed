# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What make_models.py makes; apart from makers.py, which needs TensorFlow to be imported."""

MODELS = [
    "half_plus_two",  # v1 style, with classify and regress signatures; version 123.
    "half",  # v2 style; versions 1, 2 (x/2 + 3) and 3.
    "keras_mlp",  # What Keras 3 exports.
    "two_in",  # a, b to their sum and difference.
    "strings",  # echo, upper and length of text; echo_bytes for base64.
    "lookup",  # A vocabulary in an asset file.
    "counter",  # A variable that its signatures change.
    "echo",  # One signature a dtype.
    "mixed",  # Identities of several inputs, and outputs of several shapes.
    "odd",  # Constant vectors of numbers that are hard to print.
    "const_out",  # An output without the batch dim.
    "scalar_out",  # An output of rank 0.
    "seqsum",  # Row sums and means, where padding would show.
    "coupled",  # Signatures whose rows depend on each other, and one whose rows do not.
    "rank2",  # A kernel that insists on rank 2.
    "examples",  # Classify and regress signatures of every form, right and wrong.
    "defaults",  # An input with a default in the signature.
    "slow_ms",  # Busy for as long as it is told.
    "sleep_ms",  # Likewise, asleep (needs the op library).
    "fill",  # A large output from a small request.
    "files",  # Reads and writes the files it is told.
    "probe",  # Aborts, crashes, hangs, looks around (needs the op library).
    "composite",  # Signatures that take sparse, ragged and resource inputs, beside one that serves.
    "text_op",  # Uses an op of tensorflow-text, which is not there.
    "jitted",  # bench_mlp, compiled by XLA for each batch size.
    "convolutions",  # Runs of some milliseconds, which use every thread that they get.
    "big_64",  # 64 MB of variables.
    "bench_identity",
    "bench_image",
    "bench_mlp",
    "lite_half",  # TensorFlow Lite: version 1 beside a SavedModel that answers otherwise, and 2.
    "lite_plain",  # Without signatures.
    "lite_two",  # Two inputs, two signatures.
    "lite_strings",  # Strings in and out.
    "lite_echo",  # One signature a dtype.
    "lite_matrix",  # Fixed shapes.
    "lite_counter",  # A variable that it changes.
    "lite_where",  # An output whose shape depends on values.
]
