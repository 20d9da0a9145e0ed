# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's batching parameters: sizes, splitting, padding, queue limits, files."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from clients import error_of
from local_server import eventually
from test_warm_up import warmed
from test_worker_death import settings_for


@pytest.fixture
def start(servers, models, tmp_path):
    """start(parameters, "half", ...): a server with batching."""

    def run(parameters, *names, per_model=None, **flags):
        (tmp_path / "batching.txt").write_text(parameters)
        folders = {name: models / name for name in names} | (per_model or {})
        return servers.start(
            models=folders,
            enable_batching="true",
            batching_parameters_file=tmp_path / "batching.txt",
            **flags,
        )

    return run


def at_once(calls):
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def test_batches_have_allowed_sizes_and_clients_see_their_own_rows(start, grpc_client):
    server = start(
        "max_batch_size { value: 8 } allowed_batch_sizes: [4, 8] batch_timeout_micros { value: 0 }",
        "half",
        "strings",
    )
    client = grpc_client(server)
    x = np.arange(3, dtype=np.float32)
    assert client.predict("half", {"x": x})["y"].tolist() == [2.0, 2.5, 3.0]
    words = np.array([b"ab", b"c"])
    assert client.predict("strings", {"s": words})["echo"].tolist() == words.tolist()
    error = error_of(lambda: client.predict("half", {"x": np.zeros(9, np.float32)}))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error.details().startswith("Task size 9 is larger than maximum input batch size 8")


def test_a_large_call_is_split_and_comes_back_whole(start, grpc_client):
    server = start(
        "max_batch_size { value: 100 } enable_large_batch_splitting { value: true } "
        "max_execution_batch_size { value: 4 } allowed_batch_sizes: [2, 4]",
        "half",
    )
    x = np.arange(99, dtype=np.float32)
    y = grpc_client(server).predict("half", {"x": x})["y"]
    assert np.array_equal(y, x / 2 + 2)


def test_inner_dims_are_padded_only_where_it_was_asked_for(start, grpc_client):
    # A batch leaves when it is full: two calls that wait for each other share one.
    shared = "max_batch_size { value: 2 } batch_timeout_micros { value: 20000000 } "
    calls = [np.array([[1, 2, 3]], np.float32), np.array([[10]], np.float32)]
    client = grpc_client(start(shared + "pad_variable_length_inputs: true", "seqsum"))
    answers = at_once([lambda x=x: client.predict("seqsum", {"x": x}) for x in calls])
    assert [a["sum"].tolist() for a in answers] == [[6.0], [30.0]]  # Its first element, thrice.


def test_without_padding_an_odd_shape_harms_nobody(start, grpc_client):
    parameters = "max_batch_size { value: 2 } batch_timeout_micros { value: 100000 } "
    client = grpc_client(start(parameters, "seqsum"))
    calls = [np.array([[1, 2, 3]], np.float32), np.array([[10]], np.float32)]
    answers = at_once([lambda x=x: client.predict("seqsum", {"x": x}) for x in calls])
    assert [a["sum"].tolist() for a in answers] == [[6.0], [10.0]]


def test_signatures_that_cannot_be_batched_answer_as_they_are(start, grpc_client):
    server = start(
        "max_batch_size { value: 8 } allowed_batch_sizes: [4, 8]", "scalar_out", "const_out"
    )
    client = grpc_client(server)
    keys = np.array([[1], [2]], np.int32)
    for _ in range(3):
        x = np.array([1, 2], np.float32)
        assert client.predict("scalar_out", {"x": x})["sum"] == 3.0
        outputs = client.predict("const_out", {"keys": keys})
        assert outputs["keys"].tolist() == keys.tolist()
        assert outputs["constant"].tolist() == [1.5, 2.5]


def test_a_full_queue_refuses_in_the_originals_words(start, models, grpc_client):
    server = start(
        "max_batch_size { value: 1 } max_enqueued_batches { value: 1 } "
        "num_batch_threads { value: 1 } batch_timeout_micros { value: 0 }",
        "sleep_ms",
        settings=settings_for(models, "sleep_ms"),
    )
    client = grpc_client(server)
    slow = {"ms": np.array([2000], np.int32)}

    def call():
        try:
            client.predict("sleep_ms", slow)
        except grpc.RpcError as error:
            return error.code(), error.details()
        return None

    def later():
        time.sleep(0.5)  # The first one runs by then.
        return call()

    outcomes = [o for o in at_once([call, later, later, later]) if o]
    assert len(outcomes) == 2  # One runs, one waits.
    for code, message in outcomes:
        assert code == grpc.StatusCode.UNAVAILABLE
        assert message.startswith(
            "The batch scheduling queue to which this task was submitted is full; currently 1 "
            "batches enqueued and max_enqueued_batches is 1"
        )


def test_versions_bring_their_own_parameters(start, models, tmp_path, grpc_client):
    folders = {}
    for name, text in (
        ("small", "max_batch_size { value: 2 }"),
        ("none", None),
        ("bad", "max_batch_size: 2"),
        ("three", "max_batch_size { value: 3 } allowed_batch_sizes: 3"),
    ):
        folder = tmp_path / name / "1"
        shutil.copytree(models / "half" / "1", folder)
        if text:
            (folder / "batching_params.pbtxt").write_text(text)
        folders[name] = tmp_path / name
    server = start(
        "max_batch_size { value: 4 } allowed_batch_sizes: [1, 2, 4]",
        per_model=folders,
        enable_per_model_batching_parameters="true",
        max_num_load_retries=0,
        ready=False,
    )
    client = grpc_client(server)
    eventually(lambda: client.states("small") == {1: "AVAILABLE"}, "small is up")
    eventually(lambda: client.states("none") == {1: "AVAILABLE"}, "none is up")
    three = {"x": np.zeros(3, np.float32)}
    error = error_of(lambda: client.predict("small", three))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error.details().startswith("Task size 3 is larger than maximum input batch size 2")
    assert client.predict("none", {"x": np.zeros(9, np.float32)})["y"].shape == (9,)
    message = eventually(lambda: client.status("bad")[0].status.error_message, "bad has failed")
    assert "Error parsing text-format tensorflow.serving.BatchingParameters" in message
    assert "batching_params.pbtxt:1:17" in message
    # Each is warm in the sizes of its own file, or unbatched.
    eventually(lambda: client.states("three") == {1: "AVAILABLE"}, "three is up")
    assert warmed(server, "three") == warmed(server, "none") == ("zeros", 1)
    assert "warm-up of" not in server.log()


def test_a_model_of_a_platform_file_runs_by_its_rules(servers, models, tmp_path, grpc_client):
    adapter = "[type.googleapis.com/tensorflow.serving.SavedModelBundleSourceAdapterConfig]"
    (tmp_path / "platforms.txt").write_text(
        f"""
        platform_configs {{ key: "tensorflow" value {{ source_adapter_config {{ {adapter} {{
          legacy_config {{ batching_parameters {{ max_batch_size {{ value: 2 }} }} }} }} }} }} }}
        platform_configs {{ key: "free" value {{ source_adapter_config {{ {adapter} {{
          legacy_config {{ session_config {{ inter_op_parallelism_threads: 2 }} }} }} }} }} }}
        """
    )
    (tmp_path / "models.txt").write_text(
        f"""model_config_list {{
          config {{ name: "a" base_path: "{models}/half" model_platform: "tensorflow" }}
          config {{ name: "b" base_path: "{models}/half" model_platform: "free" }} }}"""
    )
    server = servers.start(
        model_config_file=tmp_path / "models.txt", platform_config_file=tmp_path / "platforms.txt"
    )
    client = grpc_client(server)
    three = {"x": np.zeros(3, np.float32)}
    assert client.predict("b", three)["y"].tolist() == [2.0, 2.0, 2.0]
    error = error_of(lambda: client.predict("a", three))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
