# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""--prefer_tflite_model: versions with a model.tflite, served by workers over LiteRT."""

import os
import random
import shutil
import signal
import struct
from importlib import metadata
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from clients import Load, error_of
from local_server import eventually

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NAMES = ["half", "plain", "two", "strings", "echo", "matrix", "counter", "where"]
X = np.array([1.0, 2.0, 5.0], np.float32)
SPECIFIC_1 = "model_version_policy { specific { versions: 1 } }"


def floats(*values):
    return np.array(values, np.float32)


def details_of(rest, model):
    listed = rest.get("/v1/models").json()["models"]
    return next(m["details"][0] for m in listed if m["name"] == model)


@pytest.fixture(scope="module")
def server(module_servers, models):
    lite = {name: models / f"lite_{name}" for name in NAMES}
    lite["half"] = (models / "lite_half", "model_version_policy { all {} }")
    # One that has no other form is served by TensorFlow beside them.
    return module_servers.start(
        models={**lite, "saved": models / "half"}, prefer_tflite_model="true"
    )


def test_a_version_with_both_forms_is_served_from_model_tflite(client, rest):
    np.testing.assert_array_equal(client.predict("half", {"x": X}, version=1)["y"], X / 2 + 2)
    np.testing.assert_array_equal(client.predict("half", {"x": X}, version=2)["y"], X / 2 + 5)
    body = {"instances": [1.0, 2.0, 5.0]}
    answer = rest.post("/v1/models/half/versions/1:predict", body)
    assert answer.json() == {"predictions": [2.5, 3.0, 4.5]}
    columns = rest.post("/v1/models/two:predict", {"inputs": {"a": [3.0], "b": [1.0]}}).json()
    assert columns == {"outputs": {"sum": [4.0], "difference": [2.0]}}
    np.testing.assert_array_equal(client.predict("saved", {"x": X}, version=3)["y"], X / 2 + 2)


def test_without_the_flag_the_saved_model_is_served(servers, models, grpc_client):
    server = servers.start(models={"half": (models / "lite_half", SPECIFIC_1)})
    np.testing.assert_array_equal(grpc_client(server).predict("half", {"x": X})["y"], X / 2 + 3)
    assert len(server.zygotes()) == 1


def test_a_server_without_tensorflow_lite_models_starts_no_second_zygote(servers, models):
    server = servers.start(models={"half": models / "half"}, prefer_tflite_model="true")
    assert len(server.zygotes()) == 1


def test_tensorflow_is_not_in_the_workers_that_run_them(server):
    libraries = [
        {word for word in ("libLiteRt.so", "libtensorflow_cc") if word in p.maps()}
        for p in server.workers() + server.zygotes()
    ]
    assert all(len(of_one) == 1 for of_one in libraries), libraries
    assert libraries.count({"libLiteRt.so"}) == len(NAMES) + 1 + 1  # `half` twice; the zygote.


def test_the_shapes_of_a_request_are_those_of_the_run(client):
    for rows in (1, 7, 1, 1000):
        x = np.arange(rows, dtype=np.float32)
        np.testing.assert_array_equal(client.predict("half", {"x": x}, version=1)["y"], x / 2 + 2)
    # Not even an open dim is needed, as in the original.
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = x @ floats(1, 2, 3, 4, 5, 6).reshape(3, 2)
    np.testing.assert_array_equal(client.predict("matrix", {"x": x})["y"], expected)


def test_inputs_and_outputs_go_by_name(client):
    answer = client.predict("two", {"a": floats(5), "b": floats(3)})
    assert (answer["sum"], answer["difference"]) == (floats(8), floats(2))
    only = client.predict("two", {"a": floats(5), "b": floats(3)}, outputs=["difference"])
    assert list(only) == ["difference"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(client.predict("two", {"x": x}, signature="twice")["y"], 2 * x)


def test_a_file_without_signatures_gets_one_of_its_tensors_names(client):
    np.testing.assert_array_equal(client.predict("plain", {"x": X})["Identity"], X / 2 + 2)


def test_strings_come_and_go(client, rest):
    text = np.array([b"yes", b"", b"no\x00t", b"\xff" * 300], object)
    answer = client.predict("strings", {"text": text})
    assert answer["copy"].tolist() == text.tolist()
    assert answer["yes"].tolist() == [True, False, False, False]
    long = np.array([b"x" * 700_000, b"y"], object)
    assert client.predict("strings", {"text": long})["copy"].tolist() == long.tolist()
    index = np.array([2, 0] * 40_000, np.int32)  # More text than room was made for at first.
    words = client.predict("strings", {"index": index}, signature="words")["word"]
    assert words.tolist() == [b"a longer word", b"no"] * 40_000
    body = {"signature_name": "words", "instances": [1, 2]}
    assert rest.predict("strings", body).json() == {"predictions": ["yes", "a longer word"]}


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "float32"]
)
def test_every_type_comes_back_as_it_was(client, dtype):
    for rows in (1, 3):
        x = np.array([[1, 0]] * rows, dtype)
        answer = client.predict("echo", {"x": x}, signature=dtype)
        assert answer["same"].dtype == x.dtype
        np.testing.assert_array_equal(answer["same"], x)  # The input's own tensor.
        np.testing.assert_array_equal(answer["twice"], np.concatenate([x, x], 1))


def test_errors_name_the_input_what_was_expected_and_what_came(client):
    error = error_of(lambda: client.predict("half", {"x": np.array([1], np.int32)}, version=1))
    assert error.code() == INVALID
    for word in ("x", "int32", "float"):
        assert word in error.details(), error.details()
    error = error_of(lambda: client.predict("matrix", {"x": floats(1, 2).reshape(1, 2)}))
    assert error.code() == INVALID
    assert 'input "x" came with shape [1,2], the signature says [1,3]' in error.details()
    error = error_of(lambda: client.predict("half", {"x": floats()}, version=1))
    assert error.code() == INVALID
    assert "input 'x'" in error.details()
    error = error_of(lambda: client.predict("two", {"a": floats(1)}))
    assert error.code() == INVALID
    # None of this spoils the interpreters.
    np.testing.assert_array_equal(client.predict("half", {"x": X}, version=1)["y"], X / 2 + 2)
    answer = client.predict("matrix", {"x": floats(1, 0, 0).reshape(1, 3)})
    np.testing.assert_array_equal(answer["y"], [[1, 2]])


def test_an_output_whose_shape_depends_on_values_is_refused_with_the_reason(client):
    error = error_of(lambda: client.predict("where", {"x": X}))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "depends on the values" in error.details()


def test_a_model_that_keeps_state_keeps_one(client):
    totals = [float(client.predict("counter", {"by": np.float32(2)})["twice"]) for _ in range(20)]
    assert totals == [4.0 * i for i in range(1, 21)]


def test_an_output_that_is_a_variable_is_refused_rather_than_wrong(client):
    call = {"by": np.float32(0)}
    error = error_of(lambda: client.predict("counter", call, signature="raw"))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "straight from a variable" in error.details()


def test_metadata_and_status_are_those_of_any_model(client, rest):
    _, signatures = client.metadata("two")
    assert set(signatures) == {"serving_default", "twice"}
    assert set(signatures["serving_default"].inputs) == {"a", "b"}
    x = signatures["twice"].inputs["x"]
    assert (x.dtype, [d.size for d in x.tensor_shape.dim]) == (tf.float32.as_datatype_enum, [-1, 3])
    assert signatures["twice"].method_name == "tensorflow/serving/predict"
    assert client.states("half") == {1: "AVAILABLE", 2: "AVAILABLE"}
    shown = rest.get("/v1/models/two/metadata").json()["metadata"]["signature_def"]
    assert "twice" in shown["signature_def"]


def test_their_workers_are_confined_like_others(rest):
    seen = details_of(rest, "two")
    assert seen["sandbox_grade"] in "AB", seen
    assert seen["sandbox_stage"] == 2, seen


def test_many_at_once_each_get_their_own_answer(server, grpc_client):
    client = grpc_client(server)

    def call(i):
        x = np.full(1 + i % 9, i, np.float32)
        np.testing.assert_array_equal(client.predict("half", {"x": x}, version=1)["y"], x / 2 + 2)

    with Load(call, threads=8, pause=0) as load:
        eventually(lambda: load.outcomes["ok"] > 1000, "a thousand answers")
    assert load.failed == 0, load.errors[:3]


def test_a_killed_worker_comes_back(servers, models, grpc_client):
    server = servers.start(models={"two": models / "lite_two"}, prefer_tflite_model="true")
    client = grpc_client(server)
    worker = server.workers()[0]
    os.kill(worker.pid, signal.SIGKILL)

    def answers():
        try:
            return client.predict("two", {"a": floats(5), "b": floats(3)})["sum"] == floats(8)
        except grpc.RpcError:
            return False

    eventually(answers, "the model answers again")
    assert server.workers()[0].pid != worker.pid


def test_a_new_version_takes_over_without_a_failed_call(servers, models, grpc_client, tmp_path):
    shutil.copytree(models / "lite_half/1", tmp_path / "half/1")
    server = servers.start(models={"half": tmp_path / "half"}, prefer_tflite_model="true")
    client = grpc_client(server)
    with Load(lambda _: client.predict("half", {"x": X})) as load:
        shutil.copytree(models / "lite_half/2", tmp_path / "incoming")
        (tmp_path / "incoming").rename(tmp_path / "half/2")
        eventually(lambda: client.states("half").get(2) == "AVAILABLE", "version 2 serves")
        eventually(lambda: client.states("half").get(1) == "END", "version 1 is gone")
    assert load.failed == 0, load.errors[:3]
    np.testing.assert_array_equal(client.predict("half", {"x": X})["y"], X / 2 + 5)


def bad_files(whole):
    rng = random.Random(7)
    noise = rng.randbytes(2000)
    return {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "noise": noise,
        "magic": struct.pack("<I4s", 28, b"TFL3") + noise,
        "text": b"this is no model" * 10,
    }


def test_files_that_are_no_model_fail_their_version_and_nothing_else(
    servers, models, grpc_client, tmp_path
):
    bad = bad_files((models / "lite_two/1/model.tflite").read_bytes())
    for name, content in bad.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1/model.tflite").write_bytes(content)
    server = servers.start(
        models={"two": models / "lite_two", **{name: tmp_path / name for name in bad}},
        ready=False,
        prefer_tflite_model="true",
        max_num_load_retries=0,
    )
    client = grpc_client(server)
    for name in bad:
        eventually(lambda n=name: client.states(n) == {1: "END"}, f"{name} has failed")
        words = client.status(name)[0].status.error_message
        assert "model.tflite" in words, (name, words)
    assert client.predict("two", {"a": floats(5), "b": floats(3)})["sum"] == floats(8)


def test_a_missing_library_is_named_with_how_to_get_it_and_found_when_it_comes(
    servers, models, grpc_client, tmp_path
):
    empty = tmp_path / "library"
    empty.mkdir()
    server = servers.start(
        models={"two": models / "lite_two", "half": models / "half"},
        ready=False,
        prefer_tflite_model="true",
        litert_library_dir=empty,
        load_retry_interval_micros=500_000,
        max_num_load_retries=1000,
    )
    client = grpc_client(server)

    eventually(lambda: "pip install ai-edge-litert" in server.log(), "the log says what is missing")
    assert str(empty) in server.log()
    eventually(lambda: client.states("half").get(3) == "AVAILABLE", "others serve")
    package = Path(metadata.distribution("ai-edge-litert").locate_file("ai_edge_litert"))
    (empty / "libLiteRt.so").symlink_to(package / "libLiteRt.so")
    eventually(lambda: client.states("two") == {1: "AVAILABLE"}, "the library is found", 60)
    assert client.predict("two", {"a": floats(5), "b": floats(3)})["sum"] == floats(8)


def test_the_original_command_line_takes_the_same_flag(servers, models, grpc_client):
    server = servers.start(
        alias=True,
        models=None,
        model_name="half",
        model_base_path=models / "lite_half",
        prefer_tflite_model="true",
        num_tflite_pools=2,
    )
    np.testing.assert_array_equal(grpc_client(server).predict("half", {"x": X})["y"], X / 2 + 5)
