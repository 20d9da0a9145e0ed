# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""A model that loads, swaps or unloads is no business of the model beside it."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from clients import GrpcClient, Load, RestClient
from local_server import eventually, model_config

X = np.array([2.0, 4.0], np.float32)


class Phases:
    """Steady calls, and how long they took in each phase of a test."""

    def __init__(self, load):
        self.load = load
        self.at = 0

    def seconds(self):
        """Of the calls since the last time."""
        taken = self.load.seconds[self.at :]
        self.at += len(taken)
        return taken


@pytest.fixture
def steady(servers, models):
    server = servers.start(models={"half": models / "half"}, file_system_poll_wait_seconds=1)
    client = GrpcClient(server.grpc)

    def call(_turn):
        np.testing.assert_array_equal(client.predict("half", {"x": X})["y"], X / 2 + 2)

    yield server, call
    client.close()


def test_loading_swapping_and_unloading_next_door_fails_and_delays_nobody(
    steady, models, tmp_path, grpc_client
):
    server, call = steady
    big = tmp_path / "big"
    shutil.copytree(models / "big_64" / "1", big / "1")
    admin = grpc_client(server)
    alone = model_config({"half": models / "half"})
    both = model_config({"half": models / "half", "big": big})
    call(0)
    with Load(call, threads=2, pause=0.005) as load:
        phases = Phases(load)
        time.sleep(2)
        quiet = phases.seconds()
        slow = []
        for version in (2, 3, 4):
            admin.reload(both)  # Load.
            slow.append(phases.seconds())
            shutil.copytree(models / "big_64" / "1", big / f"{version}.tmp")
            (big / f"{version}.tmp").rename(big / str(version))
            eventually(
                lambda v=version: admin.states("big").get(v) == "AVAILABLE", "it is swapped in"
            )
            slow.append(phases.seconds())
            admin.reload(alone)  # Unload.
            slow.append(phases.seconds())
    assert load.failed == 0, load.errors[:5]
    assert len(quiet) > 20
    # Generous: loads take the cores from everybody. What may not be is that a call waits for one.
    bound = 20 * np.median(quiet) + 0.1
    assert sum(bool(phase) for phase in slow) >= len(slow) - 3, (
        "an unload may be shorter than a call"
    )
    for phase in slow:
        assert not phase or np.percentile(phase, 90) < bound, (bound, sorted(phase)[-10:])


def asked_meanwhile(server, work):
    """How many times the server said that it lives while `work` was under way."""
    probe = RestClient(server.rest)
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(work)
        count = 0
        while not going.done():
            assert probe.get("/livez").status_code == 200
            count += 1
        going.result()
    probe.close()
    return count


def test_a_large_json_answer_keeps_nobody_waiting(servers, models):
    server = servers.start(models={"fill": models / "fill"})
    client = RestClient(server.rest)

    def ask():
        body = {"signature_name": "serving_default", "inputs": {"dims": [1000, 8000]}}
        assert len(client.predict("fill", body).content) > 16_000_000

    # Printed on the loop, it would be a handful.
    assert asked_meanwhile(server, ask) > 20
    client.close()


def test_a_large_json_request_keeps_nobody_waiting(servers, models):
    server = servers.start(models={"half": models / "half"})
    client = RestClient(server.rest)
    body = b'{"instances": [' + b", ".join(b"%d.25" % (i % 1000) for i in range(4_000_000)) + b"]}"

    def ask():
        answer = client.post("/v1/models/half:predict", body)
        assert answer.status_code == 200
        assert answer.content.count(b",") == 3_999_999

    assert asked_meanwhile(server, ask) > 20
    client.close()
