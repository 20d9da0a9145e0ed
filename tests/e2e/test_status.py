# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What can be asked about models: status, metadata, health, metrics, over both protocols."""

import re

import grpc
import numpy as np
import pytest
from clients import error_of
from google.protobuf import json_format
from local_server import eventually
from tensorflow_serving.apis import get_model_metadata_pb2, model_management_pb2

MONITORING = 'prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }'


@pytest.fixture(scope="module")
def server(module_servers, models, tmp_path_factory):
    monitoring = tmp_path_factory.mktemp("monitoring") / "monitoring.config"
    monitoring.write_text(MONITORING)
    names = ["half_plus_two", "half", "two_in", "counter"]
    return module_servers.start(
        models={name: models / name for name in names}, monitoring_config_file=monitoring
    )


def test_grpc_status_has_version_state_and_no_error(client):
    (status,) = client.status("half_plus_two")
    assert status.version == 123
    assert client.states("half_plus_two") == {123: "AVAILABLE"}
    assert status.status.error_code == 0
    assert status.status.error_message == ""


def test_status_of_nobody_is_not_found(client):
    error = error_of(lambda: client.status("nobody"))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    assert error.details().startswith("Could not find any versions of model nobody")
    error = error_of(lambda: client.status("half", version=99))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    assert error.details().startswith("Could not find version 99 of model half")


def test_rest_status_is_the_original_document(rest):
    expected = {
        "model_version_status": [
            {
                "version": "123",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    for path in ("/v1/models/half_plus_two", "/v1/models/half_plus_two/versions/123"):
        answer = rest.get(path)
        assert answer.status_code == 200
        assert answer.json() == expected
    assert rest.get("/v1/models/nobody").status_code == 404
    assert rest.get("/v1/models/half_plus_two/versions/7").status_code == 404


def test_metadata_has_the_signatures_with_names_dtypes_and_shapes(client):
    answer, signatures = client.metadata("two_in")
    assert answer.model_spec.name == "two_in"
    assert answer.model_spec.version.value == 1
    signature = signatures["serving_default"]
    assert set(signature.inputs) == {"a", "b"}
    assert set(signature.outputs) == {"sum", "difference"}
    assert signature.inputs["a"].dtype == 1
    assert [d.size for d in signature.inputs["a"].tensor_shape.dim] == [-1]
    assert signature.method_name == "tensorflow/serving/predict"


def test_metadata_of_a_v1_model_has_all_its_signatures(client):
    _, signatures = client.metadata("half_plus_two")
    assert {"serving_default", "regress_x_to_y", "classify_x_to_y"} <= set(signatures)
    assert signatures["classify_x_to_y"].method_name == "tensorflow/serving/classify"


@pytest.mark.parametrize("fields", [(), ("nonsense",)])
def test_metadata_wants_the_one_field_there_is(client, fields):
    error = error_of(lambda: client.metadata("half", fields=fields))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_rest_metadata_says_what_grpc_says(client, rest):
    document = rest.get("/v1/models/two_in/metadata").json()
    assert document["model_spec"] == {"name": "two_in", "signature_name": "", "version": "1"}
    answer, signatures = client.metadata("two_in")
    parsed = get_model_metadata_pb2.SignatureDefMap()
    body = {k: v for k, v in document["metadata"]["signature_def"].items() if k != "@type"}
    json_format.ParseDict(body, parsed)
    assert dict(parsed.signature_def) == dict(signatures)
    assert answer.metadata["signature_def"].type_url.endswith("SignatureDefMap")


def test_live_and_ready_are_true_together_once_all_is_loaded(rest):
    assert rest.get("/livez").status_code == 200
    assert rest.get("/readyz").status_code == 200


def health(channel, service=""):
    """grpc.health.v1.Health/Check without its package: one string in, one number out."""
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=lambda name: b"\x0a" + bytes([len(name)]) + name.encode(),
        response_deserializer=lambda data: data[1] if data else 0,
    )
    return call(service, timeout=60)


@pytest.mark.parametrize("service", ["", "tensorflow.serving.PredictionService"])
def test_grpc_health_is_serving(client, service):
    assert health(client.channel, service) == 1


def test_grpc_health_of_an_unknown_service_is_not_found(client):
    error = error_of(lambda: health(client.channel, "nobody"))
    assert error.code() == grpc.StatusCode.NOT_FOUND


def test_an_unknown_method_is_unimplemented(client):
    call = client.channel.unary_unary("/tensorflow.serving.PredictionService/Nonsense")
    error = error_of(lambda: call(b"", timeout=60))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED


def test_the_profiler_is_unimplemented_and_says_what_to_do_instead(client):
    call = client.channel.unary_unary("/tensorflow.ProfilerService/Profile")
    error = error_of(lambda: call(b"", timeout=60))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "tf.profiler.experimental" in error.details()


def metrics(rest):
    """Name with labels to value."""
    answer = rest.get("/monitoring/prometheus/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if line and not line.startswith("#")]
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def value(page, name, **labels):
    """The sum over all series of that name that have these labels."""
    total = 0.0
    for series, number in page.items():
        bare, _, inside = series.partition("{")
        if bare != name:
            continue
        pairs = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', inside))
        if all(pairs.get(k) == v for k, v in labels.items()):
            total += number
    return total


def test_metrics_count_every_answer_once_by_model_and_status(client, rest):
    count = ":tensorflow:serving:request_count"
    before = metrics(rest)
    x = np.array([1.0], np.float32)
    for _ in range(10):
        client.predict("half", {"x": x})
    for _ in range(3):
        error_of(lambda: client.predict("half", {"nonsense": x}))
    for _ in range(2):
        rest.predict("half", {"instances": [1]})

    def grown(name, **labels):
        return value(metrics(rest), name, **labels) - value(before, name, **labels)

    eventually(lambda: grown(count, model_name="half", status="OK") >= 12, "twelve are counted", 10)
    assert grown(count, model_name="half", status="OK") == 12
    assert grown(count, model_name="half", status="INVALID_ARGUMENT") == 3
    latency = ":tensorflow:serving:request_latency_count"
    labels = {"model_name": "half", "API": "Predict", "entrypoint": "GRPC"}
    assert grown(latency, **labels) == 10
    labels = {"model_name": "half", "API": "predict", "entrypoint": "REST"}
    assert grown(latency, **labels) == 2
    assert grown(":tensorflow:serving:runtime_latency_count", model_name="half") >= 1


def test_metrics_show_state_memory_and_copies_of_each_version(client, rest):
    client.predict("half", {"x": np.ones(1000, np.float32)})
    page = metrics(rest)
    labels = {"model_name": "half", "version": "3"}
    assert value(page, "tensord_version_state", state="AVAILABLE", **labels) == 1
    assert value(page, "tensord_copied_bytes_total", **labels) >= 4000
    assert value(page, "tensord_pss_bytes") > 1 << 20
    assert value(page, "tensord_queue_calls", **labels) == 0
    assert value(page, "tensord_in_flight_runs", **labels) == 0


def test_names_that_clients_make_up_do_not_become_series(client, rest):
    error_of(lambda: client.predict("made_up", {"x": np.zeros(1, np.float32)}))
    before = len(metrics(rest))
    for i in range(50):
        error_of(lambda i=i: client.predict(f"made_up_{i}", {"x": np.zeros(1, np.float32)}))
    assert len(metrics(rest)) == before


def test_reloading_with_something_else_than_a_list_is_refused(client):
    request = model_management_pb2.ReloadConfigRequest()
    error = error_of(lambda: client.models.HandleReloadConfigRequest(request, timeout=60))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert client.states("half")[3] == "AVAILABLE"
