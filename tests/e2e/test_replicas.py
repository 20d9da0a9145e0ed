# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Several workers a version: one dies, and nobody notices but the operator."""

import os
import signal

import grpc
import numpy as np
import pytest
from clients import GrpcClient, Load, RestClient, error_of
from local_server import eventually
from test_status import metrics, value
from test_worker_death import probe, settings_for

X = np.array([2.0], np.float32)


@pytest.fixture
def monitoring(tmp_path):
    path = tmp_path / "monitoring"
    path.write_text('prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }')
    return path


def details(server, model):
    rest = RestClient(server.rest)
    models = {m["name"]: m for m in rest.get("/v1/models").json()["models"]}
    rest.close()
    return models[model]["details"][0]


def all_live(server, model, replicas):
    eventually(lambda: details(server, model)["replicas"] == replicas, f"{replicas} replicas live")


def test_a_replica_that_is_killed_costs_no_request(servers, models, monitoring, grpc_client):
    server = servers.start(
        models={"half": models / "half"},
        settings='model { key: "half" value { replicas: 2 } }',
        monitoring_config_file=monitoring,
    )
    all_live(server, "half", 2)
    client = grpc_client(server)
    assert len(server.workers()) == 2
    with Load(lambda _: client.predict("half", {"x": X}), threads=4, pause=0) as load:
        for death in (1, 2):
            os.kill(server.workers()[0].pid, signal.SIGKILL)
            eventually(
                lambda d=death: details(server, "half")["restarts"] == d, "its death is known"
            )
            assert client.states("half")[3] == "AVAILABLE"
            all_live(server, "half", 2)
    assert load.failed == 0, load.errors[:5]
    assert load.outcomes["ok"] > 100
    found = details(server, "half")
    assert (found["replicas_wanted"], found["restarts"]) == (2, 2)
    rest = RestClient(server.rest)
    page = metrics(rest)
    rest.close()
    for kind in ("live", "wanted"):
        assert value(page, "tensord_replicas", model_name="half", kind=kind) == 2


def test_replicas_share_the_work(servers, models, monitoring, grpc_client):
    """Two sleeps of a second take about one second where each has a worker of its own."""
    server = servers.start(
        models={"sleep_ms": models / "sleep_ms"},
        settings=settings_for(models, "sleep_ms", more="replicas: 3 executors: 1"),
        monitoring_config_file=monitoring,
    )
    all_live(server, "sleep_ms", 3)
    client = grpc_client(server)
    request = client.predict_request("sleep_ms", {"ms": np.array([1500], np.int32)})
    calls = [client.prediction.Predict.future(request, timeout=60) for _ in range(3)]
    rest = RestClient(server.rest)

    def runs():
        return value(metrics(rest), "tensord_in_flight_runs", model_name="sleep_ms")

    eventually(lambda: runs() == 3, "all three run at once")
    assert all(call.result(timeout=60) for call in calls)
    rest.close()


def test_a_stateful_model_has_one_replica_and_says_so(servers, models):
    server = servers.start(
        models={"counter": models / "counter"},
        settings='model { key: "counter" value { replicas: 3 } }',
    )
    found = details(server, "counter")
    assert (found["replicas"], found["replicas_wanted"]) == (1, 1)
    assert "Assign" in found["stateful"]  # The op that makes it so.
    assert any("one replica instead of 3" in w for w in found["warnings"])


def test_a_call_that_ends_workers_is_found_and_refused(servers, models, monitoring, grpc_client):
    """Its first run ends one replica, its second, alone, the other; then it is known."""
    server = servers.start(
        models={"probe": models / "probe"},
        settings=settings_for(models, "probe", more="replicas: 2 executors: 2"),
        monitoring_config_file=monitoring,
    )
    all_live(server, "probe", 2)
    client = grpc_client(server)
    error = error_of(lambda: probe(client, "abort", "poison"))
    assert error.code() == grpc.StatusCode.INTERNAL, error.details()
    eventually(lambda: details(server, "probe")["restarts"] == 2, "two deaths are known")
    all_live(server, "probe", 2)
    for _ in range(10):
        error = error_of(lambda: probe(client, "abort", "poison"))
        assert error.code() == grpc.StatusCode.INTERNAL
        assert "ended two workers" in error.details()
    assert probe(client, "hello") == "hello"
    assert details(server, "probe")["restarts"] == 2
    rest = RestClient(server.rest)
    assert value(metrics(rest), "tensord_unserved_calls_total", reason="poison") == 10
    rest.close()


def test_without_a_replica_a_deadly_call_ends_two_workers_and_no_more(servers, models, grpc_client):
    server = servers.start(
        models={"probe": models / "probe"}, settings=settings_for(models, "probe")
    )
    client = grpc_client(server)
    codes = []
    while not codes or codes[-1] != "INTERNAL":
        codes.append(error_of(lambda: probe(client, "segv", "poison", timeout=60)).code().name)
        assert len(codes) < 10, codes
    assert codes.count("UNAVAILABLE") == 1
    error = error_of(lambda: probe(client, "segv", "poison", timeout=60))
    assert "ended two workers" in error.details()
    eventually(lambda: probe(client, "hello", timeout=60) == "hello", "all others are served")


@pytest.mark.skipif(os.cpu_count() == 1, reason="one CPU has one width")
def test_a_model_that_uses_several_threads_has_a_session_for_runs_beside_others(
    servers, models, grpc_client
):
    server = servers.start(
        models={name: models / name for name in ("convolutions", "half")},
        settings='model { key: "half" value { executors: 2 } }',
    )
    assert details(server, "half")["sessions"] == 1
    if len(os.sched_getaffinity(0)) > 1:
        assert details(server, "convolutions")["sessions"] == 2
    image = np.random.default_rng(1).random((1, 96, 96, 3)).astype(np.float32)
    client = grpc_client(server)
    alone = client.predict("convolutions", {"image": image})["y"]
    request = client.predict_request("convolutions", {"image": image})
    calls = [client.prediction.Predict.future(request, timeout=60) for _ in range(20)]
    for call in calls:
        answer = np.array(call.result().outputs["y"].float_val, np.float32)
        np.testing.assert_allclose(answer, alone[0], rtol=1e-4)


def test_a_width_that_the_operator_sets_stays(servers, models):
    server = servers.start(
        models={"convolutions": models / "convolutions"},
        settings='model { key: "convolutions" value { intra_op_threads: 2 } }',
    )
    assert details(server, "convolutions")["sessions"] == 1


def test_run_times_are_kept_for_the_next_start(servers, models, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    server = servers.start(models={"half": models / "half"}, state_dir=state)
    client = GrpcClient(server.grpc)
    for _ in range(60):
        client.predict("half", {"x": X})
    client.close()
    assert server.stop() == 0
    lines = (state / "run_times").read_text().splitlines()
    assert lines[0] == "tensord run times 1"
    rows, nanoseconds, version, signature, model = lines[1].split("\t")
    assert (rows, version, signature, model) == ("1", "3", "serving_default", "half")
    assert 0 < int(nanoseconds) < 10**9
    # Whatever is written there, the server starts and serves.
    (state / "run_times").write_text(lines[0] + "\n1\t9999999999999999999\t3\tx\thalf\nnonsense")
    server = servers.start(models={"half": models / "half"}, state_dir=state)
    client = GrpcClient(server.grpc)
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    client.close()
