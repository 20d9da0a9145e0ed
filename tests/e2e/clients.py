# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The clients that people have: tensorflow-serving-api over gRPC, and plain HTTP."""

import contextlib
import socket
import threading
import time
from collections import Counter

import grpc
import requests
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

SECONDS = 60.0  # Generous: a deadline of a test is never what it tests, unless it says so.


class GrpcClient:
    """The stock stubs, with the few lines that every user of them writes."""

    def __init__(self, address, options=(), credentials=None):
        unlimited = [
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
            # One connection each, so that a test knows what it talks through.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        options = [*unlimited, *options]
        self.channel = (
            grpc.insecure_channel(address, options=options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options=options)
        )
        self.prediction = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def close(self):
        self.channel.close()

    @staticmethod
    def predict_request(model, inputs, *, version=None, label=None, signature=None, outputs=()):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = model
        if version is not None:
            request.model_spec.version.value = version
        if label is not None:
            request.model_spec.version_label = label
        if signature is not None:
            request.model_spec.signature_name = signature
        for name, value in inputs.items():
            is_proto = hasattr(value, "tensor_shape")
            request.inputs[name].CopyFrom(value if is_proto else tf.make_tensor_proto(value))
        request.output_filter.extend(outputs)
        return request

    def predict_raw(self, model, inputs, timeout=SECONDS, **spec):
        request = self.predict_request(model, inputs, **spec)
        return self.prediction.Predict(request, timeout=timeout)

    def predict(self, model, inputs, timeout=SECONDS, **spec):
        """Outputs as arrays."""
        answer = self.predict_raw(model, inputs, timeout, **spec)
        return {name: tf.make_ndarray(proto) for name, proto in answer.outputs.items()}

    def status(self, model, version=None, timeout=SECONDS):
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = model
        if version is not None:
            request.model_spec.version.value = version
        return self.models.GetModelStatus(request, timeout=timeout).model_version_status

    def states(self, model):
        """Version to the name of its state; empty while the model is unknown."""
        names = get_model_status_pb2.ModelVersionStatus.State
        with contextlib.suppress(grpc.RpcError):
            return {s.version: names.Name(s.state) for s in self.status(model)}
        return {}

    def metadata(self, model, version=None, fields=("signature_def",), timeout=SECONDS):
        """The signature map."""
        request = get_model_metadata_pb2.GetModelMetadataRequest()
        request.model_spec.name = model
        if version is not None:
            request.model_spec.version.value = version
        request.metadata_field.extend(fields)
        answer = self.prediction.GetModelMetadata(request, timeout=timeout)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(signatures)
        return answer, signatures.signature_def

    def reload(self, config_text, timeout=SECONDS):
        request = model_management_pb2.ReloadConfigRequest()
        text_format.Parse(config_text, request.config)
        return self.models.HandleReloadConfigRequest(request, timeout=timeout)


class RestClient:
    def __init__(self, base):
        self.base = base
        self.session = requests.Session()
        self.session.trust_env = False

    def close(self):
        self.session.close()

    def get(self, path, **arguments):
        return self.session.get(self.base + path, timeout=SECONDS, **arguments)

    def post(self, path, body, **arguments):
        """`body`: a JSON document as dict, or bytes as they are."""
        kind = {"json": body} if isinstance(body, dict) else {"data": body}
        return self.session.post(self.base + path, timeout=SECONDS, **kind, **arguments)

    def predict(self, model, body, **arguments):
        return self.post(f"/v1/models/{model}:predict", body, **arguments)


def error_of(call):
    """The grpc.RpcError that a call must end with."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call succeeded, and should not have")


def raw_exchange(port, data, seconds=30.0):
    """What a server says to these bytes until it closes, or goes quiet for `seconds`."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        received = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while piece := connection.recv(65536):
                received += piece
    return received


class Load:
    """Steady calls from threads of its own until it is told to stop; counts every outcome.

    `call(i)` makes one call and checks its answer; what it raises is that call's outcome.
    """

    def __init__(self, call, threads=2, pause=0.01):
        self.call = call
        self.pause = pause
        self.outcomes = Counter()
        self.errors = []
        self.seconds = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(threads)]

    def _run(self, index):
        turn = index
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                self.call(turn)
                outcome = "ok"
            except grpc.RpcError as error:
                outcome = error.code().name
                self.errors.append(f"{error.code().name}: {error.details()}")
            except Exception as error:  # Whatever it is, it is counted.
                outcome = type(error).__name__
                self.errors.append(repr(error))
            with self._lock:
                self.outcomes[outcome] += 1
                self.seconds.append(time.monotonic() - started)
            turn += len(self._threads)
            self._stop.wait(self.pause)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def failed(self):
        return sum(n for outcome, n in self.outcomes.items() if outcome != "ok")
