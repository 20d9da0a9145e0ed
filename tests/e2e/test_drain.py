# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: what is in flight is finished, what is new is told, and the server is gone with 0."""

import os
import signal
import threading
import time

import grpc
import numpy as np
import pytest
from clients import GrpcClient, RestClient
from local_server import eventually
from test_worker_death import settings_for

X = np.array([2.0], np.float32)
SLOW = 2000


def start(servers, models, executors=8, **flags):
    return servers.start(
        models={name: models / name for name in ("half", "sleep_ms")},
        settings=settings_for(models, "sleep_ms", more=f"executors: {executors}"),
        **flags,
    )


class InFlight:
    """Slow calls over gRPC and REST, and what became of them."""

    def __init__(self, server, count=6):
        self.client = GrpcClient(server.grpc)
        request = self.client.predict_request("sleep_ms", {"ms": np.array([SLOW], np.int32)})
        self.calls = [
            self.client.prediction.Predict.future(request, timeout=60) for _ in range(count)
        ]
        self.codes = []
        self.threads = [
            threading.Thread(target=self._post, args=(server.rest,)) for _ in range(count)
        ]
        for thread in self.threads:
            thread.start()
        time.sleep(0.5)

    def _post(self, base):
        client = RestClient(base)
        try:
            self.codes.append(client.predict("sleep_ms", {"instances": [SLOW]}).status_code)
        except OSError as error:
            self.codes.append(repr(error))
        client.close()

    def outcomes(self):
        grpc_codes = []
        for call in self.calls:
            call.exception(timeout=60)
            grpc_codes.append(call.code().name)
        for thread in self.threads:
            thread.join(timeout=60)
        self.client.close()
        return grpc_codes, self.codes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_in_flight_is_finished_and_the_exit_code_is_0(servers, models, number):
    server = start(servers, models, executors=40)
    slow = InFlight(server, count=20)
    server.tree()
    server.signal(number)
    assert server.wait(30) == 0
    grpc_codes, rest_codes = slow.outcomes()
    assert grpc_codes == ["OK"] * 20
    assert rest_codes == [200] * 20
    assert not server.left_over()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_every_process_loses_no_call(servers, models, number):
    """What systemd sends to a control group, and killall to a name; timeout(1) sends it twice."""
    server = start(servers, models, executors=40)
    slow = InFlight(server, count=20)
    pids = [process.pid for process in reversed(server.tree())]
    for pid in pids + pids:
        os.kill(pid, number)
    assert server.wait(30) == 0
    grpc_codes, rest_codes = slow.outcomes()
    assert grpc_codes == ["OK"] * 20
    assert rest_codes == [200] * 20
    assert not server.left_over()


def test_an_idle_server_is_gone_at_once(servers, models):
    server = start(servers, models)
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 5


def test_a_draining_server_is_not_ready_and_sends_new_calls_elsewhere(servers, models):
    server = start(servers, models)
    slow = InFlight(server)
    server.tree()
    server.signal(signal.SIGTERM)
    # The port may be closed to new connections already: whoever asks then is sent elsewhere, too.
    eventually(lambda: server.status_code("/readyz") in {503, 0}, "it says so", 5)
    client = GrpcClient(server.grpc)
    with pytest.raises(grpc.RpcError) as caught:
        client.predict("half", {"x": X}, timeout=20)
    # Never "unknown model": the models are there until the last call has ended.
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    client.close()
    assert server.wait(30) == 0
    assert set(slow.outcomes()[0]) == {"OK"}


def test_in_the_lame_duck_time_it_serves_on_though_not_ready(servers, models):
    server = start(servers, models, drain_lame_duck_ms=3000)
    client, rest = GrpcClient(server.grpc), RestClient(server.rest)
    server.tree()
    server.signal(signal.SIGTERM)
    eventually(lambda: rest.get("/readyz").status_code == 503, "it says it is not ready", 2)
    for _ in range(10):
        assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
        assert rest.predict("half", {"instances": [2]}).status_code == 200
    assert rest.get("/livez").status_code == 200
    assert server.process.poll() is None
    assert server.wait(30) == 0
    client.close()
    rest.close()


def test_connections_kept_alive_are_closed_politely(servers, models):
    """Load on both protocols while it drains: no call that was taken is lost."""
    server = start(servers, models, drain_lame_duck_ms=500)
    rest, refused, lost = RestClient(server.rest), [], []

    def post():
        while not refused:
            try:
                code = rest.predict("half", {"instances": [2]}).status_code
                if code != 200:
                    refused.append(code)
            except OSError as error:
                text = repr(error)
                (refused if "refused" in text.lower() else lost).append(text)
                refused.append(text)

    thread = threading.Thread(target=post)
    thread.start()
    time.sleep(0.5)
    server.tree()
    server.signal(signal.SIGTERM)
    assert server.wait(30) == 0
    thread.join(timeout=30)
    assert not [text for text in lost if "RemoteDisconnected" not in text], lost
    assert not [code for code in refused if code == 404], refused
    rest.close()


def test_the_drain_limit_ends_what_does_not_end(servers, models):
    server = start(servers, models, drain_timeout_ms=500)
    slow = InFlight(server)
    started = time.monotonic()
    server.tree()
    server.signal(signal.SIGTERM)
    assert server.wait(30) == 0, "it was asked to end, and did"
    assert time.monotonic() - started < 5
    grpc_codes, _ = slow.outcomes()
    assert set(grpc_codes) <= {"UNAVAILABLE", "OK", "CANCELLED"}
    eventually(lambda: not server.left_over(), "no process is left", 10)


def test_a_second_signal_ends_it_at_once(servers, models):
    server = start(servers, models)
    slow = InFlight(server)
    server.tree()
    server.signal(signal.SIGTERM)
    time.sleep(0.3)  # Right after the first it would be the same one.
    started = time.monotonic()
    server.signal(signal.SIGTERM)
    server.wait(10)
    assert time.monotonic() - started < 2.5
    eventually(lambda: not server.left_over(), "no process is left", 10)
    slow.outcomes()
