# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""A SavedModel behind BentoML, as its guide shows it: POST /predict {"inputs": {name: values}}."""

import os

import bentoml
import tensorflow as tf


@bentoml.service(traffic={"timeout": 60})
class Peer:
    def __init__(self):
        self.model = tf.saved_model.load(os.environ["BENCH_MODEL"])
        self.function = self.model.signatures["serving_default"]
        self.types = {k: v.dtype for k, v in self.function.structured_input_signature[1].items()}

    @bentoml.api
    def predict(self, inputs: dict) -> dict:
        tensors = {name: tf.constant(inputs[name], dtype) for name, dtype in self.types.items()}
        return {"outputs": {k: v.numpy().tolist() for k, v in self.function(**tensors).items()}}
