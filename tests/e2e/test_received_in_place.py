# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Large tensors are received where the worker reads them; only the counter tells."""

import os
import signal
import struct
import threading

import numpy as np
import pytest
from clients import GrpcClient, Load, RestClient
from local_server import eventually
from test_http2_frames import DATA, END_HEADERS, HEADERS, PREDICT_HEAD, Connection, frame
from test_replicas import all_live, details
from test_status import metrics, value

IMAGE = np.arange(224 * 224 * 3, dtype=np.float32).reshape(1, 224, 224, 3)
OUT_BYTES = 3 * 4


@pytest.fixture
def start(servers, models, tmp_path):
    monitoring = tmp_path / "monitoring"
    monitoring.write_text(
        'prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }'
    )

    def with_models(*names, **more):
        return servers.start(
            models={name: models / name for name in names},
            monitoring_config_file=monitoring,
            **more,
        )

    return with_models


def copied(server, model):
    rest = RestClient(server.rest)
    found = value(metrics(rest), "tensord_copied_bytes_total", model_name=model)
    rest.close()
    return found


def test_an_image_is_copied_once_on_its_way_to_the_worker(start, grpc_client):
    server = start("bench_image")
    client = grpc_client(server)
    before = copied(server, "bench_image")
    for _ in range(20):
        np.testing.assert_array_equal(
            client.predict("bench_image", {"image": IMAGE})["y"], IMAGE[:, 0, 0, :]
        )
    grown = copied(server, "bench_image") - before
    assert 20 * IMAGE.nbytes <= grown <= 20 * (IMAGE.nbytes + 2 * 64 + OUT_BYTES)


def test_a_small_second_input_stays_with_its_large_neighbour(start, grpc_client):
    server = start("two_in")
    client = grpc_client(server)
    rows = 50_000
    a, b = np.arange(rows, dtype=np.float32), np.full(rows, 3, np.float32)
    first = client.predict("two_in", {"a": a, "b": b})
    again = client.predict("two_in", {"a": a, "b": b})
    assert first.keys() == again.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


@pytest.mark.parametrize("loops", [1, 2])
def test_many_at_once_get_the_answers_to_their_own(start, loops):
    server = start("half", loops=loops)
    wrong = []

    def run(index):
        client = GrpcClient(server.grpc)
        for i in range(10):
            x = np.arange(40_000 + 1000 * (i % 3), dtype=np.float32) + 100_000 * index + i
            if not np.array_equal(client.predict("half", {"x": x})["y"], x / 2 + 2):
                wrong.append((index, i))
        client.close()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_clients_that_stop_in_the_middle_hold_no_place_for_ever(start, grpc_client):
    server = start("bench_image")
    client = grpc_client(server)
    message = client.predict_request("bench_image", {"image": IMAGE}).SerializeToString()
    begin = (b"\0" + struct.pack(">I", len(message)) + message)[:16_000]
    held = [Connection(server.grpc_port) for _ in range(8)]
    for connection in held:
        assert connection.send(
            frame(HEADERS, END_HEADERS, 1, PREDICT_HEAD) + frame(DATA, 0, 1, begin)
        )
    for _ in range(5):  # All places may be taken: then it is copied, as ever.
        np.testing.assert_array_equal(
            client.predict("bench_image", {"image": IMAGE})["y"], IMAGE[:, 0, 0, :]
        )
    for connection in held:
        connection.socket.close()

    def copied_once():
        before = copied(server, "bench_image")
        client.predict("bench_image", {"image": IMAGE})
        return copied(server, "bench_image") - before < 1.1 * IMAGE.nbytes

    eventually(copied_once, "there is a place again")


def test_a_workers_death_costs_no_large_request(start, grpc_client):
    settings = 'model { key: "bench_image" value { replicas: 2 } }'
    server = start("bench_image", settings=settings)
    all_live(server, "bench_image", 2)
    client = grpc_client(server)

    def ask(_):
        answer = client.predict("bench_image", {"image": IMAGE})["y"]
        np.testing.assert_array_equal(answer, IMAGE[:, 0, 0, :])

    with Load(ask, threads=3, pause=0) as load:
        for death in (1, 2, 3):
            answered = load.outcomes["ok"]
            eventually(lambda n=answered: load.outcomes["ok"] > n + 10, "calls are answered")
            os.kill(server.workers()[0].pid, signal.SIGKILL)
            eventually(
                lambda d=death: details(server, "bench_image")["restarts"] == d, "it is known"
            )
            all_live(server, "bench_image", 2)
    assert load.failed == 0, load.errors[:5]
