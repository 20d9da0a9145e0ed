# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The list of models changes: by RPC and by SIGHUP; good, bad and at the same time."""

import signal
import threading

import grpc
import numpy as np
import pytest
from clients import GrpcClient, Load, error_of
from local_server import eventually, model_config

X = np.array([2.0], np.float32)


@pytest.fixture
def server(servers, models):
    return servers.start(models={"half": models / "half"})


@pytest.fixture
def client(server, grpc_client):
    return grpc_client(server)


def test_a_reload_adds_a_model_and_answers_when_it_serves(client, models):
    config = model_config({"half": models / "half", "two_in": models / "two_in"})
    answer = client.reload(config)
    assert answer.status.error_code == 0
    outputs = client.predict("two_in", {"a": X, "b": X})
    assert outputs["sum"].tolist() == [4.0]


def test_a_reload_drops_a_model_and_the_others_serve_on(server, client, models):
    client.reload(model_config({"half": models / "half", "two_in": models / "two_in"}))
    with Load(lambda _: client.predict("half", {"x": X})) as load:
        client.reload(model_config({"half": models / "half"}))
        eventually(lambda: len(server.workers()) == 1, "its process is gone")
        error = error_of(lambda: client.predict("two_in", {"a": X, "b": X}))
        assert error.code() == grpc.StatusCode.NOT_FOUND
    assert load.failed == 0, load.errors[:5]


def test_an_empty_list_unloads_everything(server, client):
    client.reload("model_config_list {}")
    eventually(lambda: not server.workers(), "no worker is left")
    error = error_of(lambda: client.predict("half", {"x": X}))
    assert error.code() == grpc.StatusCode.NOT_FOUND


def test_a_reload_works_where_polling_is_off(servers, models, grpc_client):
    server = servers.start(models={"half": models / "half"}, file_system_poll_wait_seconds=0)
    client = grpc_client(server)
    client.reload(model_config({"half": models / "half", "two_in": models / "two_in"}), timeout=30)
    assert client.predict("two_in", {"a": X, "b": X})["sum"].tolist() == [4.0]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('model_config_list { config { name: "a" base_path: "relative" model_platform: '
         '"tensorflow" } }', "absolute"),
        ('model_config_list { config { name: "half" base_path: "/a" model_platform: "tensorflow" }'
         ' config { name: "half" base_path: "/b" model_platform: "tensorflow" } }', "half"),
        ('model_config_list { config { name: "a" base_path: "/a" } }', "platform"),
        ('model_config_list { config { name: "a" base_path: "/a" model_platform: "x" } }',
         "platform"),
    ],
)  # fmt: skip
def test_a_bad_list_is_refused_and_changes_nothing(client, config, words):
    error = error_of(lambda: client.reload(config))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert words in error.details()
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_a_config_that_is_no_list_is_refused_in_the_originals_words(client):
    error = error_of(lambda: client.reload(""))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "ServerModelConfig type not supported" in error.details()
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_a_new_model_that_fails_is_unknown_in_the_originals_words(servers, models, grpc_client):
    server = servers.start(models={"half": models / "half"}, max_num_load_retries=0)
    client = grpc_client(server)
    config = model_config(
        {"half": models / "half", "probe": models / "probe"}
    )  # Its op is missing.
    error = error_of(lambda: client.reload(config))
    assert error.code() == grpc.StatusCode.UNKNOWN
    assert error.details().startswith("1 model(s) did not become available: {")
    assert "probe" in error.details()
    assert client.states("probe") == {1: "END"}
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_a_reload_that_changes_a_models_platform_is_refused(servers, models, tmp_path, grpc_client):
    (tmp_path / "platforms.txt").write_text(
        "".join(
            f"""platform_configs {{ key: "{name}" value {{ source_adapter_config {{
              [type.googleapis.com/tensorflow.serving.SavedModelBundleSourceAdapterConfig]
              {{ }} }} }} }}"""
            for name in ("tensorflow", "other")
        )
    )
    server = servers.start(
        models={"half": models / "half"}, platform_config_file=tmp_path / "platforms.txt"
    )
    client = grpc_client(server)
    config = model_config({"half": models / "half"})
    error = error_of(lambda: client.reload(config.replace('"tensorflow"', '"other"')))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "Illegal to change a model's platform" in error.details()
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_a_missing_path_is_named_before_the_deadline_and_the_rest_serves(client, models, tmp_path):
    """D14: the reload answers with an error, and holds no later one up."""
    config = {
        "half": models / "half",
        "two_in": models / "two_in",
        "missing": tmp_path / "missing",
    }
    error = error_of(lambda: client.reload(model_config(config), timeout=30))
    assert error.code() != grpc.StatusCode.DEADLINE_EXCEEDED
    assert "missing" in error.details()
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    config["missing"] = models / "scalar_out"
    client.reload(model_config(config), timeout=30)
    # As the original, a reload does not wait for the new path of a model that it knew.
    eventually(lambda: "AVAILABLE" in client.states("missing").values(), "the new path is loaded")
    assert client.predict("missing", {"x": X})["sum"] == 2.0


def test_reloads_at_the_same_time_end_in_one_of_the_lists(server, client, models):
    lists = [["half", "two_in"], ["half", "scalar_out"], ["half", "two_in", "scalar_out"]]
    codes = []

    def reload(names):
        own = GrpcClient(server.grpc)
        try:
            own.reload(model_config({n: models / n for n in names}))
            codes.append("OK")
        except grpc.RpcError as error:
            codes.append(error.code().name)
        own.close()

    threads = [threading.Thread(target=reload, args=(names,)) for names in lists * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 9
    assert set(codes) <= {"OK", "ABORTED", "RESOURCE_EXHAUSTED"}, codes

    def serving():
        return {n for n in ("two_in", "scalar_out") if "AVAILABLE" in client.states(n).values()}

    eventually(lambda: serving() in [{*names} - {"half"} for names in lists], "one list holds")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


def test_sighup_reads_the_file_again(server, client, models):
    server.config_path.write_text(
        model_config({"half": models / "half", "two_in": models / "two_in"})
    )
    server.signal(signal.SIGHUP)
    eventually(lambda: "AVAILABLE" in client.states("two_in").values(), "two_in is up")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file_unloads_nothing_and_an_empty_list_does(server, client, text):
    server.config_path.write_text(text)
    server.signal(signal.SIGHUP)
    eventually(lambda: "it names no model" in server.log(), "the log says so")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    server.config_path.write_text("model_config_list {}")
    server.signal(signal.SIGHUP)
    eventually(lambda: "AVAILABLE" not in client.states("half").values(), "it is unloaded")


def test_sighup_with_a_broken_file_changes_nothing_and_says_so(server, client):
    server.config_path.write_text("model_config_list { nonsense")
    server.signal(signal.SIGHUP)
    eventually(lambda: "models.config" in server.log(), "the log names the file")
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
