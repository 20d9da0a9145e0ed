# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What make_models.py makes; apart from bench_makers.py, which needs TensorFlow to be imported."""

SMALL = [f"small_{i:02}" for i in range(20)]  # For Zipf traffic; versions 1 and 2, for swaps.

MODELS = [
    "identity",  # 64 bytes in and out: nothing but the server.
    "mlp",  # 64-128-64-10.
    "wide_deep",  # 26 embedded categories and 13 numbers, as of the Criteo data.
    "image_in",  # 602 KB in, 12 bytes out: nothing but the transport.
    "megabyte_out",  # 4 bytes in, 1 MB out.
    "burn",  # 64 bytes in, a few milliseconds of work a row: for overload.
    "mobilenet",  # MobileNetV2, 224 x 224.
    "resnet50",
    "bert",  # BERT-base's encoder, 128 tokens.
    *SMALL,
]
BODIES = "bodies"
OPTIONAL = ["two_gigabytes"]  # Made when it is named: for the load beside others.
