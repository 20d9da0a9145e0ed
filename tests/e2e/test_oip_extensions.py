# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What Triton's clients send beyond the Open Inference Protocol: served, or refused in words."""

import contextlib
import gzip
import json
import time
import zlib

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from clients import SECONDS, error_of
from local_server import eventually
from test_oip import HALF, X, grpc_input, http_input, infer_http, refused
from test_worker_death import settings_for
from tritonclient.utils import InferenceServerException

HALF_JSON = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [2, 4]}]}
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(
        models={name: models / name for name in ("half", "sleep_ms")},
        settings=settings_for(models, "sleep_ms"),
    )


# ---- Parameters of a request -----------------------------------------------------------


def sleep_http(http, milliseconds, **arguments):
    tensor = ("INT32", np.array([milliseconds], np.int32))
    return infer_http(http, "sleep_ms", {"ms": tensor}, outputs=("ms",), **arguments)


def sleep_grpc(over_grpc, milliseconds, **arguments):
    tensor = grpc_input("ms", "INT32", np.array([milliseconds], np.int32))
    return over_grpc.infer("sleep_ms", [tensor], **arguments)


def test_a_timeout_in_microseconds_is_the_deadline_of_its_call(http, over_grpc):
    for sleep, client in ((sleep_http, http), (sleep_grpc, over_grpc)):
        started = time.monotonic()
        error = refused(lambda s=sleep, c=client: s(c, 5000, timeout=300_000))
        assert time.monotonic() - started < 4
        assert "504" in error.status() or "DEADLINE_EXCEEDED" in error.status(), error
        assert sleep(client, 1, timeout=60_000_000).as_numpy("ms").tolist() == [1]
        assert sleep(client, 1, timeout=0).as_numpy("ms").tolist() == [1]


@pytest.mark.parametrize("value", [-1, "soon", 1.5, True, None])
def test_a_timeout_or_priority_that_is_no_count_is_refused_by_name(rest, value):
    for name in ("timeout", "priority"):
        answer = rest.post("/v2/models/half/infer", {**HALF_JSON, "parameters": {name: value}})
        assert answer.status_code == 400
        assert f"the parameter {name} must be a whole number" in answer.json()["error"]


@pytest.mark.parametrize("priority", [1, 2, 3, 4, 2**32])
def test_any_priority_is_taken(http, over_grpc, priority):
    result = infer_http(http, "half", HALF, priority=priority)
    np.testing.assert_array_equal(result.as_numpy("y"), X / 2 + 2)
    result = over_grpc.infer("half", [grpc_input("x", "FP32", X)], priority=priority)
    np.testing.assert_array_equal(result.as_numpy("y"), X / 2 + 2)


@pytest.mark.parametrize("sequence", [7, "of-words"])
def test_sequences_are_refused_by_name(http, over_grpc, sequence):
    calls = {
        "501": lambda: infer_http(http, "half", HALF, sequence_id=sequence, sequence_start=True),
        "StatusCode.UNIMPLEMENTED": lambda: over_grpc.infer(
            "half", [grpc_input("x", "FP32", X)], sequence_id=sequence, sequence_end=True
        ),
    }
    for status, call in calls.items():
        error = refused(call)
        assert error.status() == status, error
        assert "sequence_" in error.message()


# ---- Compression over REST --------------------------------------------------------------


@pytest.mark.parametrize("ask", ["gzip", "deflate", None])
@pytest.mark.parametrize("answer", ["gzip", "deflate", None])
@pytest.mark.parametrize("binary", [True, False])
def test_requests_and_answers_are_compressed_as_the_client_wants(http, ask, answer, binary):
    x = np.arange(5000, dtype=np.float32) // 100
    algorithms = {"request_compression_algorithm": ask, "response_compression_algorithm": answer}
    result = infer_http(http, "half", {"x": ("FP32", x)}, binary, **algorithms)
    np.testing.assert_array_equal(result.as_numpy("y"), x / 2 + 2)


@pytest.mark.parametrize("elements", [1000, 500_000])  # On the loop, and on the long-work thread.
def test_only_large_answers_to_those_who_accept_it_are_compressed(rest, elements):
    tensor = {"name": "x", "datatype": "FP32", "shape": [elements], "data": [2] * elements}
    body = {"inputs": [tensor]}
    for accepted, unpack in (("gzip", gzip.decompress), ("deflate", zlib.decompress)):
        with rest.session.post(
            f"{rest.base}/v2/models/half/infer",
            json=body,
            headers={"Accept-Encoding": f"br, {accepted};q=0.5"},
            timeout=SECONDS,
            stream=True,
        ) as answer:
            assert answer.headers["Content-Encoding"] == accepted
            packed = answer.raw.read(decode_content=False)
        assert len(packed) < elements  # Four times that, as text.
        assert json.loads(unpack(packed))["outputs"][0]["data"] == [3.0] * elements
    for headers in ({"Accept-Encoding": "identity"}, {"Accept-Encoding": "gzip;q=0"}):
        answer = rest.post("/v2/models/half/infer", body, headers=headers)
        assert "Content-Encoding" not in answer.headers
    answer = rest.post("/v2/models/half/infer", HALF_JSON, headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers  # It would gain nothing.


def test_a_body_that_is_not_what_its_encoding_says_is_refused(rest):
    for encoding in ("gzip", "deflate"):
        headers = {"Content-Encoding": encoding}
        answer = rest.post("/v2/models/half/infer", b"not packed at all", headers=headers)
        assert answer.status_code == 400


# ---- Statistics -------------------------------------------------------------------------


def http_statistics(http):
    (model,) = http.get_inference_statistics("half")["model_stats"]
    return model


def test_statistics_count_what_was_asked_and_what_ran(http, over_grpc, rest):
    before = http_statistics(http)
    for _ in range(5):
        infer_http(http, "half", HALF)
    over_grpc.infer("half", [grpc_input("x", "FP32", X)])
    rest.post("/v2/models/half/infer", {**HALF_JSON, "inputs": []})  # Fails.

    def ended(model):
        return sum(model["inference_stats"][end]["count"] for end in ("success", "fail"))

    eventually(lambda: ended(http_statistics(http)) == ended(before) + 7, "all calls are counted")
    after = http_statistics(http)
    assert (after["name"], after["version"]) == ("half", "3")

    def grown(*path):
        a, b = before, after
        for name in path:
            a, b = a[name], b[name]
        return b - a

    assert grown("inference_count") == 12  # Two rows each.
    assert 1 <= grown("execution_count") <= 6
    assert grown("inference_stats", "success", "count") == 6
    assert grown("inference_stats", "fail", "count") == 1
    for part in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert grown("inference_stats", part, "count") == 7
    whole = grown("inference_stats", "success", "ns")
    assert 0 < grown("inference_stats", "compute_infer", "ns") < whole < 60e9


def test_statistics_are_the_same_over_grpc_and_of_all_models(http, over_grpc):
    (model,) = over_grpc.get_inference_statistics("half", "3").model_stats
    told = http_statistics(http)
    assert (model.name, model.version) == ("half", "3")
    assert model.inference_count == told["inference_count"]
    assert model.inference_stats.success.count == told["inference_stats"]["success"]["count"]
    assert model.inference_stats.success.ns == told["inference_stats"]["success"]["ns"]
    names = [m["name"] for m in http.get_inference_statistics()["model_stats"]]
    assert names == [m.name for m in over_grpc.get_inference_statistics().model_stats]
    assert names == ["half", "sleep_ms"]
    assert "statistics" in http.get_server_metadata()["extensions"]
    assert refused(lambda: http.get_inference_statistics("nobody")).status() == "404"
    assert refused(lambda: http.get_inference_statistics("half", "9")).status() == "404"


# ---- Configuration ----------------------------------------------------------------------


def test_a_model_is_described_as_a_configuration(http, over_grpc):
    told = http.get_model_config("half")
    tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
    assert told == {
        "name": "half",
        "platform": "tensorflow_savedmodel",
        "backend": "tensorflow",
        "max_batch_size": 0,
        "input": [{"name": "x", **tensor}],
        "output": [{"name": "y", **tensor}],
    }
    (config,) = [over_grpc.get_model_config("half", "3").config]
    assert (config.name, config.platform, config.max_batch_size) == (
        "half",
        "tensorflow_savedmodel",
        0,
    )
    assert [(t.name, t.data_type, list(t.dims)) for t in config.input] == [("x", 11, [-1])]
    assert refused(lambda: http.get_model_config("nobody")).status() == "404"
    assert "model_configuration" in http.get_server_metadata()["extensions"]


# ---- What is not served ------------------------------------------------------------------


def test_shared_memory_is_refused_in_words(http, over_grpc):
    tensor = http_input("x", "FP32", X, binary=True)
    tensor.set_shared_memory("region", 8)
    error = refused(lambda: http.infer("half", [tensor]))
    assert (error.status(), "shared_memory_region" in error.message()) == ("501", True)
    tensor = grpc_input("x", "FP32", X)
    tensor.set_shared_memory("region", 8)
    error = refused(lambda: over_grpc.infer("half", [tensor]))
    assert error.status() == "StatusCode.UNIMPLEMENTED"
    assert "shared_memory_" in error.message()
    output = triton_grpc.InferRequestedOutput("y", class_count=2)
    error = refused(lambda: over_grpc.infer("half", [grpc_input("x", "FP32", X)], outputs=[output]))
    assert "classification" in error.message()
    for status in (http.get_system_shared_memory_status, http.get_cuda_shared_memory_status):
        error = refused(status)
        assert (error.status(), "shared memory" in error.message()) == ("404", True)
    error = refused(over_grpc.get_system_shared_memory_status)
    assert "shared memory is not served" in error.message()


def test_streams_of_inference_are_refused_in_words(server):
    client = triton_grpc.InferenceServerClient(server.grpc)
    ends = []
    client.start_stream(lambda result, error: ends.append(error))
    # The refusal may be there before the first request is.
    with contextlib.suppress(InferenceServerException):
        client.async_stream_infer("half", [grpc_input("x", "FP32", X)])
    eventually(lambda: ends, "the refusal is heard of")
    client.stop_stream()
    client.close()
    assert "call ModelInfer for each request" in str(ends[0]), ends


def test_other_methods_of_the_service_are_unimplemented(over_grpc):
    for method in ("TraceSetting", "LogSettings"):
        call = over_grpc._channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
        error = error_of(lambda c=call: c(b"", timeout=SECONDS))
        assert error.code() == UNIMPLEMENTED
        assert error.details()
