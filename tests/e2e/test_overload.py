# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""More than can be served: refused at once, with a hint, and by its head where that is enough."""

import json
import socket

import grpc
import numpy as np
import pytest
from clients import GrpcClient, RestClient
from local_server import eventually
from test_status import metrics, value
from test_worker_death import settings_for

EXECUTOR = "executors: 1 batching { enabled: false }"


def sleep_request(client, milliseconds):
    return client.predict_request("sleep_ms", {"ms": np.array([milliseconds], np.int32)})


@pytest.fixture
def server(servers, models, tmp_path):
    monitoring = tmp_path / "monitoring"
    monitoring.write_text(
        'prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }'
    )
    return servers.start(
        models={name: models / name for name in ("half", "sleep_ms")},
        settings=settings_for(models, "sleep_ms", more=EXECUTOR),
        monitoring_config_file=monitoring,
        rest_api_timeout_in_ms=2000,
    )


@pytest.fixture
def rest(server):
    client = RestClient(server.rest)
    yield client
    client.close()


def teach(client, milliseconds=200, runs=25):
    """So many runs of that length, after which the server knows how long one takes."""
    for _ in range(runs):
        client.predict("sleep_ms", {"ms": np.array([milliseconds], np.int32)}, timeout=60)


FIRST = (("tensord-criticality", "critical-plus"),)


def running(rest):
    return value(metrics(rest), "tensord_in_flight_runs", model_name="sleep_ms")


def queued(rest, model="sleep_ms"):
    return value(metrics(rest), "tensord_queue_calls", model_name=model)


def refused_early(rest):
    return value(metrics(rest), "tensord_refused_early_total", model_name="sleep_ms")


def test_a_call_that_would_be_late_is_refused_at_once_with_a_hint(server, rest, grpc_client):
    client = grpc_client(server)
    teach(client)
    request = sleep_request(client, 200)
    calls = [client.prediction.Predict.future(request, timeout=20) for _ in range(40)]
    eventually(lambda: queued(rest) >= 30, "eight seconds of work wait")
    late = [client.prediction.Predict.future(request, timeout=5.0) for _ in range(60)]
    refused = [c for c in late if c.exception(60) and c.code().name == "RESOURCE_EXHAUSTED"]
    assert refused, [c.code().name for c in late]
    hints = dict(refused[0].trailing_metadata())
    assert int(hints["grpc-retry-pushback-ms"]) > 0
    for call in calls:
        call.cancel()


def fill_the_queue(client, rest):
    """The calls, of 200 ms each, which come before others."""
    teach(client)
    request = sleep_request(client, 200)
    calls = [
        client.prediction.Predict.future(request, timeout=60, metadata=FIRST) for _ in range(100)
    ]
    eventually(lambda: queued(rest) >= 50, "ten seconds of work come first")
    return calls


def test_a_large_rest_body_is_refused_before_it_is_sent(server, rest, grpc_client):
    """Only the head goes out, and the answer comes: nobody waited for 10 MB."""
    client = grpc_client(server)
    calls = fill_the_queue(client, rest)
    head = (
        b"POST /v1/models/sleep_ms:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"
    )

    def refused():
        with socket.create_connection(("127.0.0.1", server.rest_port), timeout=1) as connection:
            connection.sendall(head)
            try:
                answer = connection.recv(65536)
            except TimeoutError:
                return None
        return answer.decode() if answer else None

    answer = eventually(refused, "a refusal by the head alone", 30)
    top, _, body = answer.partition("\r\n\r\n")
    assert top.startswith("HTTP/1.1 429 "), top
    assert "retry-after: " in top.lower()
    assert "overloaded" in json.loads(body)["error"]
    assert refused_early(rest) >= 1
    for call in calls:
        call.cancel()
    eventually(lambda: queued(rest) == 0, "cancelled calls have left the queue")


def test_a_large_grpc_call_is_refused_by_its_first_bytes(server, rest, grpc_client):
    """The model is named in the first field of the message."""
    client = grpc_client(server)
    calls = fill_the_queue(client, rest)
    large = client.predict_request("sleep_ms", {"ms": np.zeros(1_000_000, np.int32)})
    late = client.prediction.Predict.future(large, timeout=2)
    assert late.exception(60) is not None
    assert late.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, late.details()
    assert int(dict(late.trailing_metadata())["grpc-retry-pushback-ms"]) > 0
    assert refused_early(rest) == 1
    for call in calls:
        call.cancel()


def test_cancelled_calls_leave_the_queue_and_are_counted(server, rest, grpc_client):
    client = grpc_client(server)
    request = sleep_request(client, 3000)
    first = client.prediction.Predict.future(request, timeout=60)
    eventually(lambda: running(rest) == 1, "the first runs")
    waiting = [client.prediction.Predict.future(request, timeout=60) for _ in range(50)]
    # One may be staged behind the first: made-up inputs, at the warm-up, took no time.
    eventually(lambda: queued(rest) >= 49, "fifty wait")
    for call in waiting:
        call.cancel()
    # The first still runs: it is not that the queue was served.
    eventually(lambda: queued(rest) == 0, "none waits", 2)
    assert not first.done()
    page = metrics(rest)
    assert value(page, "tensord_unserved_calls_total", reason="cancelled") == 50
    first.cancel()


def test_sheddable_calls_are_let_go_first(server, rest, grpc_client):
    """More than half of the time that a call has is taken: one that matters little is refused."""
    client = grpc_client(server)
    teach(client)
    request = sleep_request(client, 200)
    calls = [
        client.prediction.Predict.future(request, timeout=60, metadata=FIRST) for _ in range(50)
    ]
    eventually(lambda: queued(rest) >= 40, "eight seconds of work come first")
    little = (("tensord-criticality", "sheddable"),)
    call = client.prediction.Predict.future(request, timeout=12, metadata=little)
    assert call.exception(60) is not None
    assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "sheddable" in call.details()
    for call in calls:
        call.cancel()


def test_one_hot_model_does_not_starve_another(server, grpc_client):
    """Everything that the server will take is queued for one model; the other one is served."""
    hot = grpc_client(server)
    request = sleep_request(hot, 500)
    calls = [hot.prediction.Predict.future(request, timeout=60) for _ in range(500)]
    other = GrpcClient(server.grpc)
    for i in range(50):
        x = np.array([float(i)], np.float32)
        assert other.predict("half", {"x": x}, timeout=30)["y"].tolist() == [i / 2 + 2]
    other.close()
    for call in calls:
        call.cancel()
