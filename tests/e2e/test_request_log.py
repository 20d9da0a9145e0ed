# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""logging_config: sampled calls become TFRecord files that TensorFlow reads."""

import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from clients import error_of
from local_server import eventually, model_config
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    prediction_log_pb2,
    regression_pb2,
)

ONE = np.array([1.0, 3.0], np.float32)


def logged(prefix, rate=1.0, collector="tfrecord"):
    return f"""logging_config {{
      log_collector_config {{ type: "{collector}" filename_prefix: "{prefix}" }}
      sampling_config {{ sampling_rate: {rate} }}
    }}"""


def read(folder):
    """The records of all whole files."""
    files = sorted(str(path) for path in folder.glob("*.tfrecord"))
    return [
        prediction_log_pb2.PredictionLog.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(files)
    ]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "logged"
    folder.mkdir(mode=0o755)
    return folder


@pytest.fixture
def server(servers, models, folder):
    return servers.start(
        models={"half": (models / "half", logged(folder / "half")), "two_in": models / "two_in"},
    )


def test_calls_of_both_protocols_are_logged_with_their_answers(
    server, folder, grpc_client, rest_client
):
    request = grpc_client(server).predict_request("half", {"x": ONE}, version=3)
    answer = grpc_client(server).prediction.Predict(request, timeout=60)
    rest_client(server).predict("half", {"instances": [1, 3]}).raise_for_status()
    assert server.stop() == 0
    from_grpc, from_rest = read(folder)
    assert from_grpc.predict_log.request == request
    assert from_grpc.predict_log.response == answer
    for log in (from_grpc, from_rest):
        inputs = log.predict_log.request.inputs
        np.testing.assert_array_equal(tf.make_ndarray(inputs["x"]), ONE)
        outputs = log.predict_log.response.outputs
        np.testing.assert_array_equal(
            tf.make_ndarray(outputs["y"]), tf.make_ndarray(answer.outputs["y"])
        )
        assert log.log_metadata.model_spec.name == "half"
        assert log.log_metadata.model_spec.version.value == 3
        assert log.log_metadata.model_spec.signature_name == "serving_default"
        assert log.log_metadata.sampling_config.sampling_rate == 1.0
        assert log.log_metadata.timestamp_secs > 1_600_000_000


def test_failures_and_models_without_the_setting_are_not_logged(server, folder, grpc_client):
    client = grpc_client(server)
    client.predict("two_in", {"a": ONE, "b": ONE})
    error_of(lambda: client.predict("half", {"nonsense": ONE}))
    client.predict("half", {"x": ONE})
    assert server.stop() == 0
    assert len(read(folder)) == 1


def test_a_file_that_is_being_written_is_no_tfrecord_file_yet(server, folder, grpc_client):
    grpc_client(server).predict("half", {"x": ONE})
    eventually(lambda: list(folder.glob("half-*.tfrecord.partial")), "the file is begun", 20)
    assert not list(folder.glob("*.tfrecord"))
    assert server.stop() == 0
    assert len(list(folder.glob("half-*.tfrecord"))) == 1
    assert not list(folder.glob("*.partial"))


def test_a_part_of_the_calls_is_drawn(servers, models, folder, grpc_client):
    server = servers.start(models={"half": (models / "half", logged(folder / "half", 0.5))})
    client = grpc_client(server)
    for _ in range(400):
        client.predict("half", {"x": ONE})
    assert server.stop() == 0
    assert 100 < len(read(folder)) < 300


def test_a_reload_turns_it_on_and_off(servers, models, folder, grpc_client):
    server = servers.start(models={"half": models / "half"}, allow_request_logs_by_rpc="true")
    client = grpc_client(server)
    client.predict("half", {"x": ONE})
    client.reload(model_config({"half": (models / "half", logged(folder / "half"))}))
    client.predict("half", {"x": ONE})
    client.reload(model_config({"half": models / "half"}))
    client.predict("half", {"x": ONE})
    assert server.stop() == 0
    assert len(read(folder)) == 1


def test_a_reload_by_rpc_names_no_new_places(server, models, folder, grpc_client):
    """Whoever reaches the port may not have the server write where he likes."""
    client = grpc_client(server)
    elsewhere = model_config({"half": (models / "half", logged(folder / "elsewhere"))})
    error = error_of(lambda: client.reload(elsewhere))
    assert error.code().name == "INVALID_ARGUMENT"
    assert "--allow_request_logs_by_rpc" in error.details()
    client.reload(model_config({"half": (models / "half", logged(folder / "half", rate=0.5))}))
    assert not list(folder.glob("elsewhere*"))


def test_a_folder_that_is_not_there_stops_no_call_and_is_counted(
    servers, models, tmp_path, grpc_client, rest_client
):
    monitoring = tmp_path / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    server = servers.start(
        models={"half": (models / "half", logged(tmp_path / "nowhere" / "half"))},
        monitoring_config_file=monitoring,
    )
    for _ in range(3):
        grpc_client(server).predict("half", {"x": ONE})
    counted = ':tensorflow:serving:request_log_count{model_name="half",status_code="UNAVAILABLE"} 3'
    rest = rest_client(server)
    eventually(
        lambda: counted in rest.get("/monitoring/prometheus/metrics").text, "three are counted", 20
    )
    assert server.log().count("cannot make the request log") == 1


def test_an_unknown_collector_and_a_bad_rate_are_refused(server, models, folder, grpc_client):
    client = grpc_client(server)
    for bad, words in [
        (logged(folder / "half", collector="kafka"), 'no log collector of type "kafka"'),
        (logged(folder / "half", rate=1.5), "sampling_rate is 1.5"),
        (logged("relative"), "expected an absolute path"),
    ]:
        config = model_config({"half": (models / "half", bad)})
        error = error_of(lambda config=config: client.reload(config))
        assert words in error.details()
    client.predict("half", {"x": ONE})


def test_classify_regress_and_multi_inference_are_logged_as_what_they_are(
    servers, models, folder, grpc_client, rest_client
):
    server = servers.start(models={"examples": (models / "examples", logged(folder / "examples"))})
    stub = grpc_client(server).prediction
    row = tf.train.Example()
    row.features.feature["x"].float_list.value.append(2.0)
    asked = []
    for kind, call in (
        (classification_pb2.ClassificationRequest, stub.Classify),
        (regression_pb2.RegressionRequest, stub.Regress),
    ):
        request = kind()
        request.model_spec.name = "examples"
        if call is stub.Regress:
            request.model_spec.signature_name = "regress"
        request.input.example_list.examples.append(row)
        asked.append((request, call(request, timeout=60)))
    multi = inference_pb2.MultiInferenceRequest()
    task = multi.tasks.add(method_name="tensorflow/serving/regress")
    task.model_spec.name = "examples"
    task.model_spec.signature_name = "regress"
    multi.input.example_list.examples.append(row)
    asked.append((multi, stub.MultiInference(multi, timeout=60)))
    rest = rest_client(server)
    for verb, signature in (("classify", "serving_default"), ("regress", "regress")):
        body = {"signature_name": signature, "context": {"shared": 0.5}, "examples": [{"x": 2.0}]}
        rest.post(f"/v1/models/examples:{verb}", body).raise_for_status()
    assert server.stop() == 0
    logs = read(folder)
    kinds = ["classify_log", "regress_log", "multi_inference_log", "classify_log", "regress_log"]
    assert [log.WhichOneof("log_type") for log in logs] == kinds
    for log, (request, answer) in zip(logs, asked, strict=False):
        one = getattr(log, log.WhichOneof("log_type"))
        assert (one.request, one.response) == (request, answer)
    regressed = logs[4].regress_log
    assert regressed.request.model_spec.signature_name == "regress"
    features = regressed.request.input.example_list.examples[0].features.feature
    assert features["x"].float_list.value[0] == 2.0
    assert features["shared"].float_list.value[0] == 0.5
    assert regressed.response.result.regressions[0].value == 2.5
    assert logs[3].classify_log.response.result.classifications[0].classes[0].score == 2.0


def test_what_was_logged_replays_as_warm_up(servers, server, models, folder, grpc_client):
    """A day's log, put beside a version as it is, warms the next server up."""
    for _ in range(3):
        grpc_client(server).predict("half", {"x": ONE})
    assert server.stop() == 0
    (file,) = folder.glob("*.tfrecord")
    version = folder / "half" / "3"
    shutil.copytree(models / "half" / "3", version)
    (version / "assets.extra").mkdir(exist_ok=True)
    shutil.copy(file, version / "assets.extra" / "tf_serving_warmup_requests")
    strict = 'model { key: "half" value { warm_up_strict: true } }'
    warmed = servers.start(models={"half": version.parent}, settings=strict)
    assert re.search(r"model half, version 3: loaded in .* warmed up with records", warmed.log())
