# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Versions come, go, arrive in pieces and vanish, under load. No request fails for it."""

import shutil
import time

import grpc
import numpy as np
import pytest
from clients import Load, error_of
from local_server import MIB, eventually

X = np.array([2.0], np.float32)


def place(source, base, version):
    """A complete version, as a careful exporter puts it there: renamed into place."""
    base.mkdir(parents=True, exist_ok=True)
    fresh = base / f"tmp_{version}"
    shutil.copytree(source, fresh)
    fresh.rename(base / str(version))


def half_under_load(client, answers):
    """A call for `half` at x = 2; its answer must be one of `answers`."""

    def call(_):
        (y,) = client.predict("half", {"x": X})["y"].tolist()
        assert y in answers, y

    return Load(call, threads=2, pause=0.02)


@pytest.fixture
def half(models, tmp_path):
    """A base path with version 1 of half alone."""
    base = tmp_path / "half"
    place(models / "half/1", base, 1)
    return base


def states_become(client, expected, model="half", seconds=60):
    eventually(lambda: client.states(model) == expected, f"{model} becomes {expected}", seconds)


def test_a_new_version_takes_over_under_load_and_the_old_one_ends(
    servers, models, half, grpc_client
):
    server = servers.start(models={"half": half})
    client = grpc_client(server)
    (first,) = server.workers()
    with half_under_load(client, {3.0, 4.0}) as load:
        eventually(lambda: load.outcomes["ok"] > 20, "calls are answered")
        place(models / "half/2", half, 2)
        eventually(lambda: client.states("half").get(2) == "AVAILABLE", "version 2 is up")
        states_become(client, {2: "AVAILABLE", 1: "END"})
        done = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"] > done + 20, "calls go on")
    assert load.failed == 0, load.errors[:5]
    assert client.predict("half", {"x": X})["y"].tolist() == [4.0]
    eventually(lambda: not first.alive, "the first version's process is gone")


def test_a_version_policy_keeps_what_it_names(servers, models, grpc_client):
    base = models / "half"
    policies = {
        "latest": (base, "model_version_policy { latest { num_versions: 2 } }"),
        "all": (base, "model_version_policy { all {} }"),
        "specific": (base, "model_version_policy { specific { versions: 1 } }"),
    }
    client = grpc_client(servers.start(models=policies))
    for model, versions in (("latest", {2, 3}), ("all", {1, 2, 3}), ("specific", {1})):
        eventually(
            lambda m=model, v=versions: client.states(m) == dict.fromkeys(v, "AVAILABLE"),
            f"{model} serves {versions}",
        )
    answers = [client.predict("all", {"x": X}, version=v)["y"][0] for v in (1, 2, 3)]
    assert answers == [3.0, 4.0, 3.0]


def test_a_directory_that_is_no_number_is_no_version(servers, models, half, grpc_client):
    for name in ("v2", "2.tmp", "backup", "-3"):
        shutil.copytree(models / "half/2", half / name)
    (half / "7").write_text("a file")
    client = grpc_client(servers.start(models={"half": half}))
    assert client.predict_raw("half", {"x": X}).model_spec.version.value == 1
    assert client.states("half").get(1) == "AVAILABLE"


def test_a_version_that_arrives_in_pieces_is_never_served_half(servers, models, half, grpc_client):
    """D11: graph first, then the index, then the data in two halves, seconds apart."""
    server = servers.start(models={"half": half})
    client = grpc_client(server)
    source, target = models / "half/2", half / "2"
    data = "variables/variables.data-00000-of-00001"
    content = (source / data).read_bytes()

    def never_available(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert client.states("half").get(2) in {None, "START", "LOADING"}
            time.sleep(0.1)

    with half_under_load(client, {3.0, 4.0}) as load:
        (target / "variables").mkdir(parents=True)
        shutil.copy(source / "saved_model.pb", target)
        never_available(3)
        shutil.copy(source / "variables/variables.index", target / "variables")
        never_available(3)
        (target / data).write_bytes(content[: len(content) // 2])
        never_available(3)
        with (target / data).open("ab") as file:
            file.write(content[len(content) // 2 :])
        states_become(client, {2: "AVAILABLE", 1: "END"}, seconds=20)
    assert load.failed == 0, load.errors[:5]


def test_a_version_whose_variables_never_come_takes_nobodys_place(
    servers, models, half, grpc_client
):
    """It is tried in the end, since a graph may do without; its first run tells that it cannot."""
    server = servers.start(models={"half": half}, max_num_load_retries=0)
    client = grpc_client(server)
    target = half / "2"
    with half_under_load(client, {3.0, 4.0}) as load:
        target.mkdir()
        shutil.copy(models / "half/2/saved_model.pb", target)
        eventually(lambda: client.states("half").get(2) == "END", "it was tried and failed", 60)
        assert client.states("half")[1] == "AVAILABLE"
        (status,) = client.status("half", version=2)
        assert "variables" in status.status.error_message
        # What comes late is as good as what comes early.
        shutil.copytree(models / "half/2/variables", target / "variables")
        states_become(client, {2: "AVAILABLE", 1: "END"}, seconds=60)
    assert load.failed == 0, load.errors[:5]


def test_a_broken_version_says_why_and_the_old_one_serves_on(servers, half, grpc_client):
    server = servers.start(
        models={"half": half}, max_num_load_retries=1, load_retry_interval_micros=100000
    )
    client = grpc_client(server)
    with half_under_load(client, {3.0}) as load:
        (half / "2").mkdir()
        (half / "2/saved_model.pb").write_bytes(b"this is no model")
        eventually(lambda: client.states("half").get(2) == "END", "version 2 has failed")
        done = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"] > done + 20, "calls go on")
    assert load.failed == 0, load.errors[:5]
    (status,) = client.status("half", version=2)
    assert status.status.error_code != 0
    assert status.status.error_message
    assert client.states("half")[1] == "AVAILABLE"


def test_a_vanished_base_path_unloads_nothing(servers, models, half, grpc_client):
    """D12: gone, then back, under load."""
    server = servers.start(models={"half": half})
    client = grpc_client(server)
    away = half.with_name("away")
    with half_under_load(client, {3.0}) as load:
        half.rename(away)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            assert client.states("half") == {1: "AVAILABLE"}
            time.sleep(0.2)
        away.rename(half)
        done = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"] > done + 50, "calls go on")
    assert load.failed == 0, load.errors[:5]
    place(models / "half/2", half, 2)
    eventually(lambda: client.states("half").get(2) == "AVAILABLE", "versions are found again")


def test_the_files_of_a_serving_version_may_go(servers, half, grpc_client):
    server = servers.start(models={"half": half})
    client = grpc_client(server)
    with half_under_load(client, {3.0}) as load:
        shutil.rmtree(half / "1")
        time.sleep(3)
    assert load.failed == 0, load.errors[:5]
    assert client.states("half") == {1: "AVAILABLE"}


def test_one_bad_path_delays_no_other_model(servers, models, half, tmp_path, grpc_client):
    (tmp_path / "empty").mkdir()
    server = servers.start(
        ready=False,
        models={"nowhere": tmp_path / "nowhere", "empty": tmp_path / "empty", "half": half},
    )
    client = grpc_client(server)
    eventually(lambda: client.states("half") == {1: "AVAILABLE"}, "half is up")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    place(models / "half/2", half, 2)
    eventually(lambda: client.states("half").get(2) == "AVAILABLE", "its versions are found")
    error = error_of(lambda: client.predict("nowhere", {"x": X}))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert server.status_code("/livez") == 200
    assert server.status_code("/readyz") == 503
    place(models / "half/1", tmp_path / "nowhere", 1)
    eventually(lambda: client.states("nowhere") == {1: "AVAILABLE"}, "the late path is found")


def test_a_model_whose_files_only_root_can_read_is_loaded(servers, half, grpc_client):
    for path in [half, *half.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    client = grpc_client(servers.start(models={"half": half}))
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_fifty_swaps_lose_no_request_and_keep_no_memory(servers, models, tmp_path, grpc_client):
    """Two models side by side: one swaps, both are called without a pause."""
    base = tmp_path / "big"
    place(models / "big_64/1", base, 1)
    server = servers.start(models={"big": base, "half": models / "half"})
    client = grpc_client(server)

    def call(turn):
        if turn % 2:
            assert client.predict("big", {"x": X})["y"].tolist() == [128.0]
        else:
            assert client.predict("half", {"x": X})["y"].tolist() == [3.0]

    after_third = None
    with Load(call, threads=3, pause=0.005) as load:
        for version in range(2, 52):
            place(models / "big_64/1", base, version)
            eventually(
                lambda v=version: client.states("big").get(v) == "AVAILABLE", f"{version} is up"
            )
            shutil.rmtree(base / str(version - 1))
            eventually(lambda: len(server.workers()) == 2, "the old version's process is gone")
            if version == 4:
                after_third = server.own_memory()
        after_last = server.own_memory()
    assert load.failed == 0, load.errors[:5]
    assert load.outcomes["ok"] > 500
    print(f"memory after 3 swaps {after_third / MIB:.0f} MiB, after 50 {after_last / MIB:.0f} MiB")
    assert after_last <= after_third * 1.1
