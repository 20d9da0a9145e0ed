# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What an operator does to models: labels, policies, odd names, reloads, outages, swaps."""

import os
import shutil
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import pytest
from clients import GrpcClient, Load, error_of
from local_server import MIB, eventually, model_config
from tensorflow_serving.apis import model_management_pb2
from test_metrics import MONITORING, scrape

X = np.array([2.0], np.float32)
CODE = grpc.StatusCode
ALL = "model_version_policy { all {} }"


def place(source, base, name):
    """A complete version under any name, renamed into place."""
    base.mkdir(parents=True, exist_ok=True)
    fresh = base / f"tmp_{name}"
    shutil.copytree(source, fresh)
    fresh.rename(base / str(name))


def with_labels(base, labels, policy=ALL):
    lines = [f'version_labels {{ key: "{k}" value: {v} }}' for k, v in labels.items()]
    return base, " ".join([policy, *lines])


def answer(client, model="half", **spec):
    (y,) = client.predict(model, {"x": X}, **spec)["y"].tolist()
    return y


def reload(client, models, **arguments):
    return client.reload(model_config(models), **arguments)


# ---- Numbers and policies -----------------------------------------------------------------------


def test_leading_zeros_timestamps_and_the_largest_number_are_versions(
    servers, models, tmp_path, grpc_client
):
    base = tmp_path / "numbers"
    largest = 2**63 - 1
    for name in ("00017", "1700000000", str(largest)):
        place(models / "half/1", base, name)
    for name in ("-3", "1e3", "2.denied", "0x10", str(2**63), "99999999999999999999", "٣"):
        place(models / "half/2", base, name)
    client = grpc_client(servers.start(models={"numbers": (base, ALL)}))
    expected = dict.fromkeys((17, 1700000000, largest), "AVAILABLE")
    eventually(lambda: client.states("numbers") == expected, "three numbers serve")
    for version in expected:
        assert answer(client, "numbers", version=version) == 3.0


def test_two_directories_of_one_number_are_one_version_and_said(
    servers, models, tmp_path, grpc_client
):
    base = tmp_path / "twice"
    place(models / "half/1", base, "7")
    place(models / "half/2", base, "007")
    server = servers.start(models={"twice": base})
    client = grpc_client(server)
    assert client.states("twice") == {7: "AVAILABLE"}
    # The last in lexical order counts, as in the original.
    assert answer(client, "twice") == 3.0
    assert "007" in server.log()


def test_an_empty_specific_list_unloads_all_and_another_brings_versions_back(
    servers, models, grpc_client
):
    base = models / "half"
    client = grpc_client(servers.start(models={"half": base}))
    reload(client, {"half": (base, "model_version_policy { specific {} }")})
    eventually(lambda: set(client.states("half").values()) == {"END"}, "nothing serves")
    reload(client, {"half": (base, "model_version_policy { specific { versions: [1, 3] } }")})
    eventually(
        lambda: [v for v, s in client.states("half").items() if s == "AVAILABLE"] == [3, 1],
        "versions 3 and 1 serve",
    )


# ---- Labels -------------------------------------------------------------------------------------


def test_labels_of_the_first_configuration_resolve_when_their_versions_are_up(
    servers, models, grpc_client, rest_client
):
    base = models / "half"
    labels = with_labels(base, {"stable": 1, "canary": 2})
    server = servers.start(models={"half": labels})
    client = grpc_client(server)
    eventually(lambda: set(client.states("half").values()) == {"AVAILABLE"}, "all are up")
    assert (answer(client, label="stable"), answer(client, label="canary")) == (3.0, 4.0)
    error = error_of(lambda: answer(client, label="nobody"))
    assert error.code() == CODE.INVALID_ARGUMENT
    assert error.details().startswith("Unrecognized servable version label: nobody")
    rest = rest_client(server)
    for label, y in (("stable", 3.0), ("canary", 4.0)):
        by_label = rest.post(f"/v1/models/half/labels/{label}:predict", {"instances": [2.0]})
        assert by_label.json() == {"predictions": [y]}
    # They are the configuration's, and so survive a front that dies.
    os.kill(server.front().pid, 9)

    def again():
        try:
            return answer(client, label="canary", timeout=5) == 4.0
        except grpc.RpcError:
            return False

    eventually(again, "the label resolves again")


def test_a_label_moves_under_load_and_every_answer_is_of_one_of_its_versions(
    servers, models, grpc_client
):
    base = models / "half"
    client = grpc_client(servers.start(models={"half": with_labels(base, {"live": 1})}))
    eventually(lambda: set(client.states("half").values()) == {"AVAILABLE"}, "all are up")

    def call(_):
        assert answer(client, label="live") in {3.0, 4.0}

    with Load(call, threads=2, pause=0.002) as load:
        for version in (2, 1, 2):
            reload(client, {"half": with_labels(base, {"live": version})})
            assert answer(client, label="live") == {1: 3.0, 2: 4.0}[version]
    assert load.failed == 0, load.errors[:5]


def test_a_label_on_a_version_that_does_not_serve_is_refused_and_changes_nothing(
    servers, models, grpc_client
):
    base = models / "half"
    client = grpc_client(servers.start(models={"half": with_labels(base, {"live": 1})}))
    eventually(lambda: set(client.states("half").values()) == {"AVAILABLE"}, "all are up")
    config = {"half": with_labels(base, {"live": 99}), "two_in": models / "two_in"}
    error = error_of(lambda: reload(client, config))
    assert error.code() == CODE.FAILED_PRECONDITION
    assert "not currently available for inference" in error.details()
    assert answer(client, label="live") == 3.0
    error = error_of(lambda: client.status("two_in"))
    assert error.code() == CODE.NOT_FOUND


def test_labels_may_be_ahead_of_their_versions_where_that_is_allowed(
    servers, models, tmp_path, grpc_client
):
    base = tmp_path / "half"
    place(models / "half/1", base, 1)
    server = servers.start(
        models={"half": with_labels(base, {"live": 1})},
        allow_version_labels_for_unavailable_models="true",
    )
    client = grpc_client(server)
    reload(client, {"half": with_labels(base, {"live": 1, "next": 2})})
    assert error_of(lambda: answer(client, label="next")).code() == CODE.NOT_FOUND
    # One that moves stays where it is until its new version serves.
    reload(client, {"half": with_labels(base, {"live": 2, "next": 2})})
    assert answer(client, label="live") == 3.0
    place(models / "half/2", base, 2)
    eventually(lambda: client.states("half").get(2) == "AVAILABLE", "version 2 is up")
    eventually(lambda: answer(client, label="live") == 4.0, "the label has moved")
    assert answer(client, label="next") == 4.0


# ---- Reloads ------------------------------------------------------------------------------------


def test_d14_reloads_do_not_wait_for_polls_or_for_what_is_missing(
    servers, models, tmp_path, grpc_client
):
    server = servers.start(models={"half": models / "half"}, file_system_poll_wait_seconds=0)
    client = grpc_client(server)
    config = {"half": models / "half", "two_in": models / "two_in"}
    started = time.monotonic()
    reload(client, config, timeout=30)
    assert client.predict("two_in", {"a": X, "b": X})["sum"].tolist() == [4.0]
    assert time.monotonic() - started < 10
    config |= {"missing": tmp_path / "missing", "scalar_out": models / "scalar_out"}
    error = error_of(lambda: reload(client, config, timeout=5))
    assert str(tmp_path / "missing") in error.details(), error.details()
    assert answer(client) == 3.0
    eventually(
        lambda: "AVAILABLE" in client.states("scalar_out").values(),
        "the good one is up all the same",
    )
    config["missing"] = models / "rank2"
    reload(client, config, timeout=30)


def test_a_reload_ends_at_the_deadline_of_its_caller_and_says_what_still_loads(
    servers, models, tmp_path, grpc_client
):
    half_written = tmp_path / "coming/1"
    half_written.mkdir(parents=True)
    shutil.copy(models / "half/1/saved_model.pb", half_written)
    client = grpc_client(servers.start(models={"half": models / "half"}))
    config = {"half": models / "half", "coming": half_written.parent}
    started = time.monotonic()
    error = error_of(lambda: reload(client, config, timeout=3))
    assert time.monotonic() - started < 10
    assert error.code() == CODE.DEADLINE_EXCEEDED
    assert "coming" in error.details(), error.details()
    shutil.copytree(models / "half/1/variables", half_written / "variables")
    eventually(lambda: client.states("coming") == {1: "AVAILABLE"}, "it loads when it is complete")


def test_a_reload_says_by_how_much_the_metrics_asked_for_grew(servers, models, grpc_client):
    client = grpc_client(servers.start(models={"half": models / "half"}))
    request = model_management_pb2.ReloadConfigRequest()
    for model in ("half", "two_in"):
        entry = request.config.model_config_list.config.add()
        entry.name, entry.base_path = model, str(models / model)
        entry.model_platform = "tensorflow"
    requests = "/tensorflow/serving/request_count"
    loads = "/tensorflow/cc/saved_model/load_attempt_count"
    request.metric_names.extend([requests, loads, "/no/such/metric"])
    response = client.models.HandleReloadConfigRequest(request, timeout=60)
    assert response.status.error_code == 0
    increases = {m.name: m.int64_value_increase for m in response.metric}
    assert increases == {requests: 0, loads: len(client.states("two_in"))}


def test_the_file_is_polled_and_a_broken_one_changes_nothing(servers, models, grpc_client):
    server = servers.start(models={"half": models / "half"}, model_config_file_poll_wait_seconds=1)
    client = grpc_client(server)
    server.config_path.write_text(
        model_config({"half": models / "half", "two_in": models / "two_in"})
    )

    def serves(model):
        try:
            return "AVAILABLE" in client.states(model).values()
        except grpc.RpcError:
            return False

    eventually(lambda: serves("two_in"), "the new model is up")
    server.config_path.write_text("model_config_list { config { name: 7 } }")
    eventually(lambda: "the configuration stays as it is" in server.log(), "the log says so")
    assert serves("half")
    assert serves("two_in")


def test_models_added_by_two_clients_at_once_are_both_looked_at(servers, models, grpc_client):
    """As in the original the later list wins as a whole; no list is half applied."""
    server = servers.start(models={"half": models / "half"})
    lists = [{"half": models / "half", n: models / n} for n in ("two_in", "rank2")]
    outcomes = []

    def one(config):
        client = GrpcClient(server.grpc)
        try:
            reload(client, config, timeout=30)
            outcomes.append("OK")
        except grpc.RpcError as error:
            outcomes.append(error.code().name)
        client.close()

    threads = [threading.Thread(target=one, args=(config,)) for config in lists]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) in (["ABORTED", "OK"], ["OK", "OK"]), outcomes
    client = grpc_client(server)
    assert answer(client) == 3.0


# ---- Directories --------------------------------------------------------------------------------


def test_d12_an_outage_of_the_storage_unloads_nothing_and_is_said_once(
    servers, models, tmp_path, grpc_client, rest_client
):
    base = tmp_path / "half"
    place(models / "half/1", base, 1)
    monitoring = tmp_path / "monitoring.config"
    monitoring.write_text(MONITORING)
    server = servers.start(models={"half": base}, monitoring_config_file=monitoring)
    client, rest = grpc_client(server), rest_client(server)

    def source_ok():
        return scrape(rest).value("tensord_source_ok", model_name="half")

    assert source_ok() == 1
    away = base.with_name("away")
    with Load(lambda _: answer(client), threads=2, pause=0.02) as load:
        base.rename(away)
        eventually(lambda: "what serves serves on" in server.log(), "the outage is said")
        assert source_ok() == 0
        base.write_text("not a directory: listing it is an error")
        time.sleep(2)
        base.unlink()
        base.mkdir()  # Empty.
        time.sleep(2)
        assert client.states("half") == {1: "AVAILABLE"}
        base.rmdir()
        away.rename(base)
        eventually(lambda: "is fine again" in server.log(), "the end of it is said")
        assert source_ok() == 1
        place(models / "half/3", base, 3)
        eventually(lambda: client.states("half").get(3) == "AVAILABLE", "versions are found again")
    assert load.failed == 0, load.errors[:5]
    assert server.log().count("does not exist") <= 2
    # What is asked for explicitly is still done.
    reload(client, {"half": (base, "model_version_policy { specific {} }")})
    eventually(lambda: "AVAILABLE" not in client.states("half").values(), "it is unloaded")


def test_with_unload_missing_versions_a_deleted_version_is_unloaded(
    servers, models, tmp_path, grpc_client
):
    base = tmp_path / "half"
    for version in (1, 2):
        place(models / f"half/{version}", base, version)
    server = servers.start(models={"half": base}, unload_missing_versions="true")
    client = grpc_client(server)
    assert answer(client) == 4.0
    with Load(lambda _: answer(client), threads=1, pause=0.02) as load:
        shutil.rmtree(base / "2")
        eventually(
            lambda: client.states("half") == {2: "END", 1: "AVAILABLE"}, "version 1 takes over"
        )
    assert load.failed == 0, load.errors[:5]
    away = base.with_name("away")
    base.rename(away)
    eventually(lambda: "what serves serves on" in server.log(), "the outage is noticed")
    assert client.states("half")[1] == "AVAILABLE"
    away.rename(base)
    shutil.rmtree(base / "1")
    eventually(lambda: client.states("half")[1] == "END", "nothing is left")


def test_files_replaced_in_place_are_noticed_said_and_not_loaded(
    servers, models, tmp_path, grpc_client, rest_client
):
    base = tmp_path / "half"
    shutil.copytree(models / "half/1", base / "1")
    server = servers.start(models={"half": base})
    client = grpc_client(server)
    data = base / "1/variables/variables.data-00000-of-00001"
    data.write_bytes((models / "half/2/variables/variables.data-00000-of-00001").read_bytes())
    said = "its files changed after it was loaded"
    eventually(lambda: said in server.log(), "it is said", 30)
    assert answer(client) == 3.0
    assert client.states("half") == {1: "AVAILABLE"}
    rest = rest_client(server)

    def warnings():
        (model,) = rest.get("/v1/models").json()["models"]
        return model["details"][0]["warnings"]

    eventually(lambda: any(said in w for w in warnings()), "the status says it", 10)


# ---- Memory -------------------------------------------------------------------------------------


def settings_of(model, fields):
    return f'model {{ key: "{model}" value {{ {fields} }} }}'


def test_d19_memory_comes_back_after_each_unload(servers, models, grpc_client):
    server = servers.start(models={"half": models / "half"})
    client = grpc_client(server)
    baseline = server.own_memory()
    used = []
    for _ in range(30):
        reload(client, {"half": models / "half", "big": models / "big_64"})
        for _ in range(5):
            assert client.predict("big", {"x": X})["y"].tolist() == [128.0]
        used.append(server.own_memory())
        reload(client, {"half": models / "half"})
        eventually(lambda: len(server.workers()) == 1, "its process is gone", 10)
    print(f"memory {baseline / MIB:.0f} MiB before, then {[u // MIB for u in used]} with the model")
    assert used[-1] <= used[2] * 1.1
    eventually(lambda: server.own_memory() <= baseline + 24 * MIB, "its memory is back", 5)


@pytest.mark.parametrize("limit", ["of the server", "of a worker", "of the model"])
def test_d19_a_load_that_cannot_fit_is_refused_with_the_numbers(
    servers, models, grpc_client, limit
):
    arguments = {
        "of the server": {"memory_limit_bytes": 90 * MIB},
        "of a worker": {"settings": settings_of("big", f"memory_limit_bytes: {50 * MIB}")},
        "of the model": {"settings": settings_of("big", f"model_memory_limit_bytes: {50 * MIB}")},
    }
    server = servers.start(models={"half": models / "half"}, **arguments[limit])
    client = grpc_client(server)
    config = {"half": models / "half", "big": models / "big_64"}
    error = error_of(lambda: reload(client, config))
    assert "Insufficient resources to load servable" in error.details()
    assert answer(client) == 3.0
    (status,) = client.status("big")
    assert status.status.error_code == CODE.RESOURCE_EXHAUSTED.value[0]
    assert Path(f"/proc/{server.pid}").exists()
