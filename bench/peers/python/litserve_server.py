# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""A SavedModel behind LitServe, as its guide shows it: POST /predict {"inputs": {name: values}}."""

import os
import sys

import litserve


class Peer(litserve.LitAPI):
    def setup(self, device):
        import tensorflow as tf

        self.constant = tf.constant
        self.model = tf.saved_model.load(os.environ["BENCH_MODEL"])
        self.function = self.model.signatures["serving_default"]
        self.types = {k: v.dtype for k, v in self.function.structured_input_signature[1].items()}

    def decode_request(self, request):
        return {name: self.constant(request["inputs"][name], t) for name, t in self.types.items()}

    def predict(self, inputs):
        return self.function(**inputs)

    def encode_response(self, outputs):
        return {"outputs": {name: value.numpy().tolist() for name, value in outputs.items()}}


if __name__ == "__main__":
    litserve.LitServer(Peer(), accelerator="cpu").run(
        host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", generate_client_file=False
    )
