# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Warm-up before a version is visible: recorded requests, or zeros where there are none."""

import re
import shutil
import statistics
import time

import numpy as np
import pytest
import tensorflow as tf
from clients import GrpcClient, RestClient
from local_server import eventually
from tensorflow_serving.apis import prediction_log_pb2

X = np.array([2.0], np.float32)


def predict_record(model, inputs, signature=None):
    log = prediction_log_pb2.PredictionLog()
    request = GrpcClient.predict_request(model, inputs, signature=signature)
    log.predict_log.request.CopyFrom(request)
    return log.SerializeToString()


def example_record(kind, model, signatures):
    """A classify, regress or multi_inference record of two examples."""
    log = prediction_log_pb2.PredictionLog()
    request = getattr(log, f"{kind}_log").request
    for x in (1.0, 2.0):
        example = request.input.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(x)
    if kind == "multi_inference":
        for signature in signatures:
            task = request.tasks.add()
            task.model_spec.name = model
            task.model_spec.signature_name = signature
            task.method_name = f"tensorflow/serving/{signature.split('_')[0]}"
    else:
        request.model_spec.name = model
        request.model_spec.signature_name = signatures[0]
    return log.SerializeToString()


def with_records(models, name, base, records, version=1):
    """A copy of a model's version with these recorded requests."""
    fresh = base / f"tmp_{version}"
    shutil.copytree(models / name / str(version), fresh)
    extra = fresh / "assets.extra"
    extra.mkdir(exist_ok=True)
    path = str(extra / "tf_serving_warmup_requests")
    with tf.io.TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    fresh.rename(base / str(version))
    return base


def monitored(servers, tmp_path, **arguments):
    file = tmp_path / "monitoring.config"
    file.write_text("prometheus_config { enable: true }")
    return servers.start(monitoring_config_file=file, **arguments)


def warmed(server, model="half"):
    """Source and runs of the model's warm-up, as the log has them."""
    found = re.search(
        rf"model {model}, version \d+: loaded in \S+, warmed up with (\w+) in (\S+) \((\d+) runs\)",
        server.log(),
    )
    return (found[1], int(found[3])) if found else None


def test_recorded_requests_are_replayed_before_the_version_is_visible(
    servers, models, tmp_path, grpc_client
):
    records = [predict_record("another name", {"x": X}), predict_record("half", {"x": X})]
    base = with_records(models, "half", tmp_path / "half", records)
    server = monitored(
        servers, tmp_path, models={"half": base}, num_request_iterations_for_warmup=3
    )
    client = grpc_client(server)
    assert client.states("half") == {1: "AVAILABLE"}
    source, runs = warmed(server)
    # Twice three, and the other batch sizes with the first record's row.
    assert source == "records"
    assert runs >= 6
    page = RestClient(server.rest).get("/monitoring/prometheus/metrics").text
    counted = re.findall(r'request_count\{model_name="half",status="OK"\} (\d+)', page)
    assert counted in ([], ["0"])
    ran = re.findall(r'runtime_latency_count\{[^}]*model_name="half"[^}]*\} (\d+)', page)
    assert set(ran) <= {"0"}
    assert re.findall(r'model_warmup_records_read\{[^}]*status="OK"\} (\d+)', page) == ["2"]


def test_records_of_examples_are_replayed(servers, models, tmp_path):
    classify, regress = "classify_x_to_y", "regress_x_to_y"
    records = [
        example_record("classify", "half_plus_two", [classify]),
        example_record("regress", "half_plus_two", [regress]),
        example_record("multi_inference", "half_plus_two", [classify, regress]),
    ]
    name = "half_plus_two"
    base = tmp_path / name
    with_records(models, name, base, records, version="00000123")
    server = servers.start(
        models={name: base}, settings=f'model {{ key: "{name}" value {{ warm_up_strict: true }} }}'
    )
    source, runs = warmed(server, name)
    assert source == "records"
    assert runs >= 3


def test_warm_up_can_be_turned_off(servers, models, tmp_path):
    base = with_records(models, "half", tmp_path / "half", [predict_record("half", {"x": X})])
    server = servers.start(
        models={"half": base, "two_in": models / "two_in"}, enable_model_warmup="false"
    )
    assert warmed(server) is None
    assert warmed(server, "two_in") is None


def test_without_records_each_signature_runs_on_zeros_in_each_batch_size(servers, models):
    server = servers.start(models={"half": models / "half"})
    source, runs = warmed(server)
    assert source == "zeros"
    assert runs == 7  # 1, 2, 4 ... 64 rows.


def test_a_stateful_model_is_not_run_on_zeros(servers, models, grpc_client):
    server = servers.start(models={"counter": models / "counter"})
    assert warmed(server, "counter") is None
    outputs = grpc_client(server).predict("counter", {}, signature="incr_counter")
    assert outputs["output"] == 1.0


BAD = {
    "wrong_input": (lambda: predict_record("half", {"nonsense": X}), "nonsense"),
    "wrong_signature": (lambda: predict_record("half", {"x": X}, signature="nobody"), "nobody"),
    "no_record": (lambda: b"this is no PredictionLog", "PredictionLog"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_is_a_warning_that_names_it(servers, models, tmp_path, grpc_client, case):
    make, words = BAD[case]
    records = [predict_record("half", {"x": X}), make(), predict_record("half", {"x": X})]
    server = servers.start(
        models={"half": with_records(models, "half", tmp_path / "half", records)}
    )
    client = grpc_client(server)
    assert client.predict("half", {"x": X})["y"].tolist() == [3.0]
    assert warmed(server)[1] >= 2
    (line,) = [line for line in server.log().splitlines() if "record 2: " in line]
    assert words in line
    assert "tf_serving_warmup_requests" in line


@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_fails_the_load_where_the_operator_is_strict(
    servers, models, tmp_path, grpc_client, case
):
    make, words = BAD[case]
    base = with_records(models, "half", tmp_path / "half", [make()])
    server = servers.start(
        ready=False,
        models={"half": base, "two_in": models / "two_in"},
        settings='model { key: "half" value { warm_up_strict: true } }',
        max_num_load_retries=0,
    )
    client = grpc_client(server)
    eventually(lambda: client.states("half") == {1: "END"}, "it has failed")
    (status,) = client.status("half")
    assert "record 1: " in status.status.error_message
    assert words in status.status.error_message
    # Nobody else waits for it.
    eventually(lambda: client.states("two_in") == {1: "AVAILABLE"}, "the other model serves")
    assert client.predict("two_in", {"a": X, "b": X})["sum"].tolist() == [4.0]


def test_a_file_that_holds_no_records_is_a_warning(servers, models, tmp_path, grpc_client):
    base = with_records(models, "half", tmp_path / "half", [])
    file = base / "1/assets.extra/tf_serving_warmup_requests"
    file.write_text("not a file of records, by any means")
    server = servers.start(models={"half": base})
    assert grpc_client(server).predict("half", {"x": X})["y"].tolist() == [3.0]
    assert "TFRecord" in server.log()


def test_records_beyond_the_thousandth_are_left_out_and_said(
    servers, models, tmp_path, grpc_client
):
    records = [predict_record("half", {"x": X})] * 1010
    server = servers.start(
        models={"half": with_records(models, "half", tmp_path / "half", records)}
    )
    assert grpc_client(server).states("half") == {1: "AVAILABLE"}
    assert "more than 1000 records" in server.log()
    assert 1000 <= warmed(server)[1] < 1010


def test_a_record_that_kills_the_worker_keeps_no_version_down(
    servers, models, tmp_path, grpc_client
):
    inputs = {"what": np.array([b"abort"], object), "argument": np.array([b""], object)}
    base = with_records(models, "probe", tmp_path / "probe", [predict_record("probe", inputs)])
    library = models / "libtensord_probe_op.so"
    server = servers.start(
        models={"probe": base}, op_library=library, load_retry_interval_micros=100000
    )
    client = grpc_client(server)
    hello = {"what": np.array([b"hello"], object), "argument": np.array([b""], object)}
    assert client.predict("probe", hello)["answer"][0] == b"hello"
    assert "in warm-up record 1" in server.log()
    assert "this one is not warmed up" in server.log()


def first_and_usual(client, model, rows):
    """Seconds of the first call in this batch size, and of the median one."""
    x = np.ones([rows, 64], np.float32)
    times = []
    for _ in range(30):
        started = time.monotonic()
        client.predict(model, {"x": x})
        times.append(time.monotonic() - started)
    return times[0], statistics.median(times)


@pytest.mark.parametrize("case", ["bench_mlp", "jitted", "bench_mlp recorded", "jitted recorded"])
def test_d20_the_first_requests_are_no_slower_than_the_others(
    servers, models, tmp_path, grpc_client, case
):
    model, *recorded = case.split()
    base = models / model
    if recorded:
        record = predict_record(model, {"x": np.ones([1, 64], np.float32)})
        base = with_records(models, model, tmp_path / model, [record])
    slow = {1, 8, 32}
    # A first call that lacks its warm-up is slow each time, one that a busy machine held up is not.
    for _ in range(4):
        server = servers.start(models={model: base, "half": models / "half"})
        client = grpc_client(server)
        client.predict("half", {"x": X})  # The connection's own first call.
        for rows in (1, 8, 32):
            first, usual = first_and_usual(client, model, rows)
            print(f"{model}, {rows} rows: first {first * 1e3:.1f} ms, median {usual * 1e3:.1f} ms")
            if first <= max(3 * usual, 0.004):
                slow.discard(rows)
        server.stop()
        if not slow:
            return
    raise AssertionError(f"the first calls of {slow} rows were slow each time")
