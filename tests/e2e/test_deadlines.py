# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Deadlines are kept though the model runs on, and whoever leaves is not computed for."""

import socket
import subprocess
import time

import grpc
import numpy as np
import pytest
from clients import GrpcClient, RestClient, error_of
from local_server import eventually
from test_worker_death import settings_for

X = np.array([2.0], np.float32)


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(
        models={name: models / name for name in ("half", "sleep_ms", "slow_ms")},
        settings=settings_for(models, "sleep_ms", more="executors: 1 batching { enabled: false }"),
        rest_api_timeout_in_ms=3000,
    )


@pytest.fixture(autouse=True)
def idle_again(client):
    """A test's last run may still be going; the next test waits for it."""
    yield
    client.predict("sleep_ms", {"ms": milliseconds(1)}, timeout=60)


def milliseconds(n):
    return np.array([n], np.int32)


def test_the_answer_comes_at_the_deadline_though_the_model_runs_on(client):
    started = time.monotonic()
    error = error_of(lambda: client.predict("sleep_ms", {"ms": milliseconds(4000)}, timeout=0.5))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - started < 3


def test_the_server_itself_says_it_not_only_the_client(server, tmp_path):
    """curl has no clock for grpc-timeout: it waits for what the server says."""
    message = GrpcClient.predict_request("sleep_ms", {"ms": milliseconds(4000)}).SerializeToString()
    (tmp_path / "body").write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    command = ["curl", "-sS", "--noproxy", "*", "--http2-prior-knowledge", "-D", "-", "-m", "60"]
    for header in ("content-type: application/grpc", "te: trailers", "grpc-timeout: 500m"):
        command += ["-H", header]
    command += ["--data-binary", f"@{tmp_path / 'body'}"]
    url = f"http://{server.grpc}/tensorflow.serving.PredictionService/Predict"
    started = time.monotonic()
    answer = subprocess.run(
        [*command, url], check=False, capture_output=True, text=True, timeout=90
    )
    assert 0.4 < time.monotonic() - started < 3.5
    assert "grpc-status: 4" in answer.stdout, answer


def test_rest_answers_504_at_its_own_timeout(server):
    rest = RestClient(server.rest)
    started = time.monotonic()
    answer = rest.predict("sleep_ms", {"instances": [8000]})
    assert answer.status_code == 504
    assert 2.5 < time.monotonic() - started < 7
    rest.close()


def test_what_waits_in_the_queue_past_its_deadline_never_runs(client):
    """One executor: three runs of a second each, and calls behind them that give up early."""
    started = time.monotonic()
    request = client.predict_request("sleep_ms", {"ms": milliseconds(1000)})
    first = client.prediction.Predict.future(request, timeout=60)
    time.sleep(0.1)
    late = [client.prediction.Predict.future(request, timeout=0.4) for _ in range(20)]
    for call in late:
        assert call.exception(timeout=30).code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert first.result(timeout=30)
    client.predict("sleep_ms", {"ms": milliseconds(1)}, timeout=60)
    # Had the twenty run, this would have taken twenty seconds.
    assert time.monotonic() - started < 10


def test_a_cancelled_call_leaves_the_queue(client):
    started = time.monotonic()
    request = client.predict_request("sleep_ms", {"ms": milliseconds(1000)})
    first = client.prediction.Predict.future(request, timeout=60)
    time.sleep(0.1)
    waiting = [client.prediction.Predict.future(request, timeout=60) for _ in range(20)]
    time.sleep(0.1)
    for call in waiting:
        call.cancel()
    assert first.result(timeout=30)
    client.predict("sleep_ms", {"ms": milliseconds(1)}, timeout=60)
    assert time.monotonic() - started < 10


def test_a_rest_client_that_hangs_up_leaves_the_queue(server, client):
    body = b'{"instances": [1000]}'
    head = b"POST /v1/models/sleep_ms:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    request = client.predict_request("sleep_ms", {"ms": milliseconds(1000)})
    started = time.monotonic()
    first = client.prediction.Predict.future(request, timeout=60)
    time.sleep(0.1)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.rest_port)) as connection:
            connection.sendall(head % len(body) + body)
            time.sleep(0.02)
    assert first.result(timeout=30)
    client.predict("sleep_ms", {"ms": milliseconds(1)}, timeout=60)
    assert time.monotonic() - started < 10


def test_an_idle_neighbour_is_fast_while_a_model_is_busy(client):
    request = client.predict_request("sleep_ms", {"ms": milliseconds(2000)})
    slow = client.prediction.Predict.future(request, timeout=60)
    for _ in range(50):
        client.predict("half", {"x": X})
    assert not slow.done(), "fifty calls of half took as long as one of the busy model"
    assert slow.result(timeout=30)


def test_a_busy_loop_in_a_model_is_answered_at_the_deadline_too(client):
    started = time.monotonic()
    error = error_of(lambda: client.predict("slow_ms", {"ms": milliseconds(3000)}, timeout=0.5))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - started < 2.5
    eventually(
        lambda: client.predict("slow_ms", {"ms": milliseconds(0)}, timeout=30) is not None,
        "it answers again",
    )
