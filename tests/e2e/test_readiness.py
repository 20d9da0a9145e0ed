# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Live, ready and healthy mean what they say while models come and go."""

import threading
import time
import urllib.error
import urllib.request

import grpc
import numpy as np
from local_server import eventually, model_config

ONE = np.array([1.0], np.float32)
SERVING, NOT_SERVING = 1, 2


def health(channel, service=""):
    """grpc.health.v1.Health/Check without its package: one string in, one number out."""
    call = channel.unary_unary("/grpc.health.v1.Health/Check")
    request = b"\x0a" + bytes([len(service)]) + service.encode() if service else b""
    answer = call(request, timeout=60)
    return answer[1] if answer else 0


def ready_page(server):
    try:
        with urllib.request.urlopen(server.rest + "/readyz", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def watch(server, channel, until):
    """(live, ready, healthy) as often as it can be asked, until until() says so. The Open Inference
    Protocol's two pages, asked in between, say what ours say."""
    seen = []
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done = until()
        live, ready = server.status_code("/livez"), server.status_code("/readyz")
        assert server.status_code("/v2/health/live") == live
        theirs = server.status_code("/v2/health/ready") == 200  # Else 400, as that protocol has it.
        assert theirs in {ready == 200, server.status_code("/readyz") == 200}  # It may turn now.
        seen.append((live, ready, health(channel)))
        if done:
            return seen
    raise TimeoutError(seen[-10:])


def test_during_a_start_it_is_live_and_becomes_ready_and_healthy_together(servers, models):
    server = servers.start(ready=False, models={"big_64": models / "big_64"})
    eventually(lambda: server.status_code("/livez") == 200, "it listens", 60)
    with grpc.insecure_channel(server.grpc) as channel:
        grpc.channel_ready_future(channel).result(timeout=60)
        seen = watch(server, channel, lambda: server.status_code("/readyz") == 200)
    assert seen[0] == (200, 503, NOT_SERVING)  # No model loads as fast as a port opens.
    assert seen[-1] == (200, 200, SERVING)
    assert {live for live, _, _ in seen} == {200}
    states = [ready for _, ready, _ in seen]
    assert states == sorted(states, reverse=True)  # 503 until it is ready, 200 ever after.


def test_it_stays_ready_while_another_model_loads(servers, models, grpc_client):
    server = servers.start(models={"half": models / "half"})
    client = grpc_client(server)
    both = model_config({"half": models / "half", "big_64": models / "big_64"})
    reload = threading.Thread(target=lambda: client.reload(both))
    reload.start()
    seen = watch(server, client.channel, lambda: client.states("big_64") == {1: "AVAILABLE"})
    reload.join()
    assert set(seen) == {(200, 200, SERVING)}
    assert len(seen) > 1


def test_it_stays_ready_when_all_models_are_unloaded(servers, models, grpc_client):
    """Nothing that is wanted is missing."""
    server = servers.start(models={"half": models / "half"})
    client = grpc_client(server)
    unload = threading.Thread(target=lambda: client.reload("model_config_list {}"))
    unload.start()
    seen = watch(server, client.channel, lambda: not server.workers())
    unload.join()
    assert set(seen) == {(200, 200, SERVING)}


def test_a_model_that_cannot_load_makes_a_start_unready_and_says_why(servers, models, tmp_path):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "saved_model.pb").write_bytes(b"nonsense")
    server = servers.start(
        ready=False, models={"half": models / "half", "broken": tmp_path / "broken"}
    )

    eventually(lambda: "half: 3 AVAILABLE" in ready_page(server)[1], "half is there", 60)
    code, text = ready_page(server)
    assert code == 503
    assert "broken: 1" in text
