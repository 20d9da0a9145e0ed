# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Workers are killed, stopped, crashed and hung in the middle of batches.

Every call gets one answer, the other model's calls all succeed, and the model comes back.
"""

import os
import signal
import time
from collections import Counter

import grpc
import numpy as np
import pytest
from clients import Load, error_of
from local_server import eventually

X = np.array([2.0], np.float32)
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def settings_for(models, *names, more=""):
    library = models / "libtensord_probe_op.so"
    lines = [
        f'model {{ key: "{name}" value {{ op_libraries: "{library}" {more} }} }}' for name in names
    ]
    return "\n".join(lines)


def probe(client, what, argument="", timeout=60.0):
    inputs = {
        "what": np.array([what.encode()], object),
        "argument": np.array([str(argument).encode()], object),
    }
    return client.predict("probe", inputs, timeout=timeout)["answer"][0].decode()


@pytest.fixture
def server(servers, models):
    """`half` stands for the others; `probe` does what it is told, four at a time."""
    return servers.start(
        models={name: models / name for name in ("half", "probe", "sleep_ms")},
        settings=settings_for(models, "probe", "sleep_ms", more="executors: 4"),
    )


@pytest.fixture
def client(server, grpc_client):
    return grpc_client(server)


@pytest.fixture
def others(server, grpc_client):
    """Calls for `half` through the whole test; none may fail."""
    client = grpc_client(server)
    with Load(lambda _: client.predict("half", {"x": X})) as load:
        yield load
    assert load.failed == 0, load.errors[:5]
    assert load.outcomes["ok"] > 0


def comes_back(client, seconds=60):
    def answers():
        try:
            return probe(client, "hello", timeout=5) == "hello"
        except grpc.RpcError:
            return False

    eventually(answers, "probe answers again", seconds)


def outcomes(calls, seconds=90):
    """The codes of futures; every one must end."""
    codes = Counter()
    for call in calls:
        try:
            call.result(timeout=seconds)
            codes["OK"] += 1
        except grpc.FutureTimeoutError:
            codes["NO ANSWER"] += 1
        except grpc.RpcError as error:
            codes[error.code().name] += 1
    return codes


def sleepers(client, count, milliseconds=300, timeout=60):
    requests = [
        client.predict_request("sleep_ms", {"ms": np.array([milliseconds], np.int32)})
        for _ in range(count)
    ]
    return [client.prediction.Predict.future(r, timeout=timeout) for r in requests]


def worker_of_sleep(server):
    """The worker that maps the files of sleep_ms: told apart by what it is called."""
    return worker_named(server, "sleep_ms")


def worker_named(server, model):
    pids = {p.pid: p for p in server.workers()}
    for pid, process in pids.items():
        with open(f"/proc/{pid}/comm") as name, open(f"/proc/{pid}/cmdline") as line:
            if model[:10] in name.read() + line.read():
                return process
    raise AssertionError(f"none of {sorted(pids)} is called {model}")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_worker_killed_amid_runs_costs_its_runs_alone(server, client, others, number):
    calls = sleepers(client, 40)
    time.sleep(0.2)
    os.kill(worker_of_sleep(server).pid, number)
    codes = outcomes(calls)
    assert set(codes) <= {"OK", "UNAVAILABLE"}, codes
    assert sum(codes.values()) == 40
    # Those that still waited in the queue were answered by the next worker.
    assert codes["OK"] > 0
    assert codes["UNAVAILABLE"] > 0
    eventually(lambda: outcomes(sleepers(client, 1, 1)) == {"OK": 1}, "sleep_ms is back")


@pytest.mark.parametrize("how", ["abort", "segv", "exit"])
def test_a_model_that_crashes_answers_unavailable_and_is_started_again(client, others, how):
    error = error_of(lambda: probe(client, how, "7"))
    assert error.code() == UNAVAILABLE
    assert "probe" in error.details()
    comes_back(client)


def test_a_crash_is_answered_at_once(client, others):
    started = time.monotonic()
    error_of(lambda: probe(client, "abort"))
    assert time.monotonic() - started < 3


def test_a_stopped_worker_is_found_and_replaced(server, client, others):
    calls = sleepers(client, 8)
    time.sleep(0.2)
    stopped = worker_of_sleep(server)
    os.kill(stopped.pid, signal.SIGSTOP)
    codes = outcomes(calls)
    assert set(codes) <= {"OK", "UNAVAILABLE"}, codes
    eventually(lambda: not stopped.alive, "the stopped worker is gone")
    eventually(lambda: outcomes(sleepers(client, 1, 1)) == {"OK": 1}, "sleep_ms is back")


def test_a_run_that_never_ends_is_answered_at_its_deadline_and_ended(servers, models, grpc_client):
    server = servers.start(
        models={name: models / name for name in ("half", "probe")},
        settings=settings_for(models, "probe", more="executors: 2"),
    )
    client = grpc_client(server)
    before = {p.pid for p in server.workers()}
    started = time.monotonic()
    error = error_of(lambda: probe(client, "spin", timeout=2.0))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - started < 5
    # Half is not touched by it, and the spinning process is ended some time after.
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    eventually(lambda: before - {p.pid for p in server.workers()}, "the run was ended", 60)
    comes_back(client)


def test_a_run_that_takes_longer_than_the_operator_allows_is_ended(servers, models, grpc_client):
    server = servers.start(
        models={"probe": models / "probe"},
        settings=settings_for(models, "probe", more="executors: 2 run_timeout_ms: 1000"),
    )
    error = error_of(lambda: probe(grpc_client(server), "spin", timeout=60.0))
    assert error.code() == UNAVAILABLE
    assert "run_timeout_ms" in error.details()


def test_a_model_that_always_crashes_backs_off_and_says_so(server, client, others):
    for i in range(6):
        # Each another one: the same one would be known, and refused.
        error = error_of(lambda i=i: probe(client, "abort", i, timeout=30))
        assert error.code() in {UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
    started = {p.pid for p in server.workers()}
    assert client.states("half")[3] == "AVAILABLE"
    assert client.states("probe")[1] in {"AVAILABLE", "LOADING", "END"}
    assert len(started) <= 3


def test_a_deadly_call_ends_two_workers_and_no_more(client, others):
    """The next such call runs where nothing else does; after that it is known, and refused."""
    codes = []
    while not codes or codes[-1] != "INTERNAL":
        codes.append(error_of(lambda: probe(client, "segv", "x", timeout=60)).code().name)
        assert len(codes) < 10, codes
    assert 1 <= codes.count("UNAVAILABLE") <= 3, codes
    error = error_of(lambda: probe(client, "segv", "x", timeout=60))
    assert error.code() == grpc.StatusCode.INTERNAL
    assert "ended two workers" in error.details()
    comes_back(client)


def test_a_call_that_makes_its_worker_exit_is_known_after_three(client, others):
    """As when the machine is short of memory, nobody can tell whose fault it is that a worker ends
    without a word; but three in a row, the last one alone, are no chance."""
    codes = []
    while not codes or codes[-1] != "INTERNAL":
        codes.append(error_of(lambda: probe(client, "exit", "7", timeout=60)).code().name)
        assert len(codes) < 10, codes
    assert codes.count("UNAVAILABLE") >= 2, codes
    error = error_of(lambda: probe(client, "exit", "7", timeout=60))
    assert error.code() == grpc.StatusCode.INTERNAL, error.details()
    comes_back(client)


def test_a_run_that_everybody_has_left_does_not_keep_its_executor(servers, models, grpc_client):
    server = servers.start(
        models={"probe": models / "probe"},
        settings=settings_for(models, "probe", more="executors: 1"),
    )
    client = grpc_client(server)
    for i in range(60):
        assert probe(client, "hello", i) == "hello"
    request = client.predict_request(
        "probe", {"what": np.array(["spin"], object), "argument": np.array(["0"], object)}
    )
    call = client.prediction.Predict.future(request, timeout=3600)
    time.sleep(1)
    call.cancel()
    started = time.monotonic()
    # Answered by the next worker, long before the hour that the call had.
    eventually(lambda: answers_hello(client), "the executor is free again", 60)
    assert time.monotonic() - started < 30


def answers_hello(client):
    try:
        return probe(client, "hello", timeout=60) == "hello"
    except grpc.RpcError:
        return False


def test_a_crash_while_a_stateful_model_runs_is_never_retried(servers, models, grpc_client):
    server = servers.start(models={"counter": models / "counter"})
    client = grpc_client(server)
    for expected in (1.0, 2.0):
        outputs = client.predict("counter", {}, signature="incr_counter")
        assert outputs["output"] == expected
    (worker,) = server.workers()
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: any(w != worker for w in server.workers()), "it is started again")

    def counts_from_zero():
        try:
            return client.predict("counter", {}, signature="get_counter")["output"] == 0.0
        except grpc.RpcError:
            return False

    eventually(counts_from_zero, "a new process knows nothing of the old one's count")


def test_a_worker_that_dies_idle_is_replaced_before_anybody_asks(server, client, others):
    worker = worker_of_sleep(server)
    os.kill(worker.pid, signal.SIGKILL)
    eventually(
        lambda: worker.pid not in [p.pid for p in server.workers()] and len(server.workers()) == 3,
        "three workers again",
    )
    assert outcomes(sleepers(client, 1, 1)) == {"OK": 1}
