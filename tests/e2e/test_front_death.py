# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The front is killed: the next one goes on with what the last one served by, and stops at nothing
that broke meanwhile."""

import os
import shutil
import signal

import grpc
import numpy as np
import pytest
from clients import GrpcClient, error_of
from local_server import eventually, model_config
from test_access import RULES, metadata

X = np.array([2.0], np.float32)
PAGE = "/monitoring/prometheus/metrics"
LABEL = "version_labels { key: 'stable' value: 3 }"


def ask(server, model="half", inputs=None, name=None, **spec):
    """One call on a connection of its own; None when it fails."""
    client = GrpcClient(server.grpc)
    request = client.predict_request(model, inputs or {"x": X}, **spec)
    try:
        answer = client.prediction.Predict(
            request, timeout=10, metadata=metadata(name) if name else ()
        )
    except grpc.RpcError:
        return None
    finally:
        client.close()
    return sorted(answer.outputs)


@pytest.fixture(params=["serve", "alias"])
def alias(request):
    return request.param == "alias"


@pytest.fixture
def copies(models, tmp_path):
    """Two models in directories of this test's own."""
    for name in ("half", "two_in"):
        shutil.copytree(models / name, tmp_path / name)
    return {name: tmp_path / name for name in ("half", "two_in")}


# ---- Models that are not there any more ---------------------------------------------------------


def delete(path):
    shutil.rmtree(path)


def spoil(path):
    for file in path.glob("*/saved_model.pb"):
        file.write_bytes(b"nonsense")


@pytest.mark.parametrize("harm", [delete, spoil])
def test_one_model_that_cannot_come_back_holds_no_other_up(servers, copies, alias, harm):
    server = servers.start(models=copies, alias=alias, max_num_load_retries=0)
    harm(copies["two_in"])
    server.kill_front()
    eventually(lambda: ask(server), "half answers again", 60)
    # Nor does it end the server once it is known to have failed.
    eventually(lambda: "did not become available" in server.log(), "the log says what failed")
    assert ask(server)
    assert server.process.poll() is None


# ---- What was told by RPC -----------------------------------------------------------------------


def test_a_list_and_its_labels_told_by_rpc_stay(servers, models, grpc_client, alias):
    server = servers.start(models={"two_in": models / "two_in"}, alias=alias)
    config = {"half": (models / "half", LABEL), "scalar_out": models / "scalar_out"}
    grpc_client(server).reload(model_config(config), timeout=60)
    for _ in range(2):  # The second heir has it from the first.
        server.kill_front()
        eventually(lambda: ask(server, label="stable"), "the label answers")
        eventually(lambda: ask(server, "scalar_out"), "the other model answers")
        assert ask(server, "two_in", {"a": X, "b": X}) is None, "the file's list is not back"
    # The file is read when somebody asks for it, as ever.
    server.signal(signal.SIGHUP)
    eventually(lambda: ask(server, "two_in", {"a": X, "b": X}), "the file's list holds")
    server.kill_front()
    eventually(lambda: ask(server, "two_in", {"a": X, "b": X}), "and goes on to hold")
    assert ask(server, "scalar_out") is None


def test_a_refused_list_leaves_nothing_behind(servers, models, grpc_client):
    server = servers.start(models={"half": models / "half"})
    moved = model_config({"half": (models / "half", "version_labels { key: 'l' value: 77 }")})
    error_of(lambda: grpc_client(server).reload(moved))
    server.kill_front()
    eventually(lambda: ask(server), "half answers")
    assert ask(server, label="l") is None


def test_a_model_that_was_unloaded_by_name_stays_unloaded(servers, models, tmp_path):
    path = tmp_path / "admin.socket"
    names = ("half", "two_in")
    server = servers.start(models={name: models / name for name in names}, admin_socket_path=path)
    with grpc.insecure_channel(f"unix:{path}") as channel:
        unload = channel.unary_unary("/inference.GRPCInferenceService/RepositoryModelUnload")
        unload(b"\x12\x06two_in", timeout=20)
    eventually(lambda: ask(server, "two_in", {"a": X, "b": X}) is None, "it is unloaded")
    server.kill_front()
    eventually(lambda: ask(server), "the other one answers")
    eventually(lambda: len(server.workers()) == 1, "one worker")
    assert ask(server, "two_in", {"a": X, "b": X}) is None


# ---- Files --------------------------------------------------------------------------------------


def test_files_that_are_broken_by_now_matter_to_no_next_front(servers, models, tmp_path, alias):
    texts = {
        "access_rules_file": RULES,
        "monitoring_config_file": "prometheus_config { enable: true }",
        "batching_parameters_file": "max_batch_size { value: 4 }",
        "tensorflow_session_config_file": "intra_op_parallelism_threads: 1",
    }
    flags = {name: tmp_path / name for name in texts}
    for name, path in flags.items():
        path.write_text(texts[name])
    server = servers.start(
        models={"half": models / "half"},
        settings='model { key: "half" value { executors: 1 } }',
        alias=alias,
        enable_batching="true",
        **flags,
    )
    assert ask(server, name="alice")
    broken = [*flags.values(), server.options["model_settings_file"], server.config_path]
    for path in broken[::2]:
        path.write_text("{ nonsense")
    for path in broken[1::2]:
        path.unlink()
    server.kill_front()
    eventually(lambda: ask(server, name="alice"), "the model answers who may ask it")
    assert ask(server) is None, "the rules hold"
    assert server.status_code(PAGE) == 200
    assert server.process.poll() is None
    assert "cannot start" not in server.log()
    server.kill_front()
    eventually(lambda: ask(server, name="alice"), "and the next one's next")


def test_an_edit_nobody_asked_to_read_waits_for_the_next_reading(servers, models):
    server = servers.start(models={"half": models / "half"})
    both = {name: models / name for name in ("half", "scalar_out")}
    server.config_path.write_text(model_config(both))
    server.kill_front()
    eventually(lambda: ask(server), "half answers")
    assert ask(server, "scalar_out") is None
    server.signal(signal.SIGHUP)
    eventually(lambda: ask(server, "scalar_out"), "the new list holds")


def test_a_reload_asked_for_while_no_front_lives_is_made_by_the_next(servers, models):
    server = servers.start(models={"half": models / "half"})
    both = {name: models / name for name in ("half", "scalar_out")}
    server.config_path.write_text(model_config(both))
    os.kill(server.front().pid, signal.SIGKILL)
    server.signal(signal.SIGHUP)
    eventually(lambda: ask(server, "scalar_out"), "the new list holds")


def test_a_file_that_is_polled_is_read_by_the_next_front_as_a_change(servers, models):
    server = servers.start(models={"half": models / "half"}, model_config_file_poll_wait_seconds=1)
    server.config_path.write_text("{ nonsense")
    server.kill_front()
    eventually(lambda: ask(server), "half answers")
    eventually(lambda: "the configuration stays as it is" in server.log(), "the log says so")
    both = {name: models / name for name in ("half", "scalar_out")}
    server.config_path.write_text(model_config(both))
    eventually(lambda: ask(server, "scalar_out"), "the new list holds")
