# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What asks the server: the stock gRPC client, plain HTTP, and both without a pause."""

import threading
import time
from dataclasses import dataclass, field

import grpc
import numpy as np
import requests
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

MODEL = "digits"


class OverGrpc:
    """tensorflow-serving-api, as its users write it."""

    name = "gRPC"

    def __init__(self, server):
        self.channel = grpc.insecure_channel(server.grpc)
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)

    def classify(self, pixels):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = MODEL
        request.inputs["pixels"].CopyFrom(tf.make_tensor_proto(pixels))
        outputs = self.stub.Predict(request, timeout=30).outputs
        return tf.make_ndarray(outputs["label"]), tf.make_ndarray(outputs["probability"])

    def close(self):
        self.channel.close()


class OverRest:
    """One POST with JSON in it."""

    name = "REST"

    def __init__(self, server):
        self.url = f"{server.rest}/v1/models/{MODEL}:predict"
        self.session = requests.Session()
        self.session.trust_env = False

    def classify(self, pixels):
        answer = self.session.post(self.url, json={"instances": pixels.tolist()}, timeout=30)
        answer.raise_for_status()
        rows = answer.json()["predictions"]
        return np.array([r["label"] for r in rows]), np.array([r["probability"] for r in rows])

    def close(self):
        self.session.close()


def accuracy(client, pixels, labels):
    """Of one client, asked in batches of 50."""
    parts = [client.classify(pixels[i : i + 50])[0] for i in range(0, len(pixels), 50)]
    return float(np.mean(np.concatenate(parts) == labels))


@dataclass
class Phase:
    """What was sent while something went on."""

    name: str
    seconds: list = field(default_factory=list)

    def quantile(self, q):
        return 1000 * float(np.quantile(self.seconds, q)) if self.seconds else float("nan")


class Traffic:
    """Clients that each ask for one digit after the other until they are told to stop."""

    def __init__(self, server, pixels):
        self.clients = [OverGrpc(server), OverGrpc(server), OverRest(server)]
        self.pixels = pixels
        self.phase = Phase("before")
        self.phases = [self.phase]
        self.failures = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(c,)) for c in self.clients]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for client in self.clients:
            client.close()

    def begin(self, name):
        """What is sent from now on counts for a new phase."""
        self.phase = Phase(name)
        self.phases.append(self.phase)

    def _run(self, client):
        turn = 0
        while not self._stop.is_set():
            phase, started = self.phase, time.monotonic()
            row = turn % len(self.pixels)
            try:
                client.classify(self.pixels[row : row + 1])
            except Exception as error:  # Whatever it is, the demo counts and shows it.
                self.failures.append(f"{client.name}: {error}")
            phase.seconds.append(time.monotonic() - started)
            turn += 1
