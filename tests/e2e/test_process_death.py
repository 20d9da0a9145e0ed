# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Supervisor, front and zygote are killed in turn: what each death costs, and what it leaves."""

import contextlib
import os
import signal
import socket
import time

import grpc
import numpy as np
import pytest
from clients import GrpcClient, Load
from local_server import all_processes, eventually, model_config

X = np.array([2.0], np.float32)


@pytest.fixture
def server(servers, models):
    return servers.start(models={name: models / name for name in ("half", "two_in")})


def kill(process):
    os.kill(process.pid, signal.SIGKILL)


def answers(server):
    client = GrpcClient(server.grpc)
    try:
        return client.predict("half", {"x": X}, timeout=5)["y"].tolist() == [3.0]
    except grpc.RpcError:
        return False
    finally:
        client.close()


def test_no_process_but_workers_and_zygote_maps_tensorflow(server):
    """Point 5 of what must be shown."""
    for process in server.tree():
        has_it = "libtensorflow" in process.maps()
        assert has_it == (process.program == "tensord-worker"), process


def test_a_killed_supervisor_takes_everything_along(server):
    server.tree()
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    eventually(lambda: not server.left_over(), "no process is left", 10)
    eventually(lambda: port_is_free(server.grpc_port), "the ports are free")


def port_is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def test_a_killed_front_is_started_again_and_no_connection_is_refused(server):
    """The listening sockets stay: a connection made meanwhile waits, and is served."""
    front, workers = server.front(), server.workers()
    kill(front)
    refused = 0
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for port in (server.grpc_port, server.rest_port):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            except ConnectionRefusedError:
                refused += 1
        time.sleep(0.05)
    assert refused == 0
    eventually(lambda: answers(server), "the new front answers")
    assert server.front() not in {None, front}
    assert server.process.poll() is None
    eventually(lambda: not any(w.alive for w in workers), "the old front's workers are gone")
    eventually(lambda: len(server.workers()) == 2, "both models have a worker again")


def test_calls_in_flight_when_the_front_dies_end_with_a_closed_connection(server, grpc_client):
    client = grpc_client(server)
    with Load(lambda _: client.predict("half", {"x": X}, timeout=20), threads=4, pause=0) as load:
        eventually(lambda: load.outcomes["ok"] > 50, "calls are answered")
        kill(server.front())
        eventually(lambda: answers(server), "the new front answers")
        done = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"] > done + 20, "calls go on")
    assert set(load.outcomes) <= {"ok", "UNAVAILABLE"}, load.errors[:5]


def test_a_killed_zygote_harms_no_worker_and_is_there_when_needed(server, grpc_client):
    client = grpc_client(server)
    (zygote,) = server.zygotes()
    workers = server.workers()
    with Load(lambda _: client.predict("half", {"x": X})) as load:
        kill(zygote)
        eventually(lambda: not zygote.alive, "the zygote is gone")
        done = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"] > done + 50, "calls go on")
    assert load.failed == 0, load.errors[:5]
    assert all(w.alive for w in workers)
    # The next worker needs one: kill a worker, and see it replaced.
    kill(workers[0])
    eventually(lambda: len(server.workers()) == 2, "two workers again")
    eventually(lambda: answers(server), "half answers")


def test_a_stopped_zygote_is_replaced_and_holds_no_load_up(server, models, grpc_client):
    client = grpc_client(server)
    (zygote,) = server.zygotes()
    workers = server.workers()
    os.kill(zygote.pid, signal.SIGSTOP)
    config = {name: models / name for name in ("half", "two_in", "scalar_out")}
    client.reload(model_config(config), timeout=60)
    assert client.predict("scalar_out", {"x": X})["sum"] == 2.0
    eventually(lambda: not zygote.alive, "the stopped zygote is gone")
    assert "was stopped by a signal; killing it" in server.log()
    assert all(w.alive for w in workers)


def test_a_stopped_front_is_replaced(server):
    front = server.front()
    os.kill(front.pid, signal.SIGSTOP)
    eventually(lambda: not front.alive, "the stopped front is gone")
    eventually(lambda: answers(server), "the new front answers")
    assert "it gives no sign of life" in server.log()


def test_zygote_and_worker_killed_together_both_come_back(server):
    for process in [*server.zygotes(), *server.workers()]:
        kill(process)
    eventually(lambda: answers(server), "half answers")
    eventually(lambda: len(server.workers()) == 2, "two workers again")


def test_front_and_zygote_killed_together_both_come_back(server):
    for process in [server.front(), *server.zygotes()]:
        with contextlib.suppress(ProcessLookupError):  # A zygote ends when its front is gone.
            kill(process)
    eventually(lambda: answers(server), "half answers")


def test_killed_again_and_again_the_server_still_comes_back(server):
    for _ in range(3):
        kill(server.front())
        eventually(lambda: answers(server), "half answers")
    assert len([p for p in server.tree() if p.program == "tensord"]) == 2


def test_ending_leaves_no_zombie_of_ours(server):
    for process in server.workers():
        kill(process)
    eventually(lambda: len(server.workers()) == 2, "two workers again")
    zombies = [p for p in all_processes() if p.session == server.pid and p.state == "Z"]
    assert not zombies
