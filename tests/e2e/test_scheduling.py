# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Batches and loops, from outside: every caller gets the answer to its own question."""

import threading

import grpc
import numpy as np
import pytest
from clients import GrpcClient, RestClient
from test_status import metrics, value


def ask_in_parallel(server, clients=8, calls=100):
    """Each client sends its own numbers; the wrong ones that came back."""
    wrong = []

    def run(index):
        client = GrpcClient(server.grpc)
        requests = {}
        for i in range(calls):
            rows = np.arange(1 + (index + i) % 5, dtype=np.float32) + 1000 * index + i
            request = client.predict_request("half", {"x": rows})
            requests[i] = (rows, client.prediction.Predict.future(request, timeout=60))
        for rows, call in requests.values():
            got = list(call.result().outputs["y"].float_val)
            if got != (rows / 2 + 2).tolist():
                wrong.append((rows.tolist(), got))
        client.close()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


@pytest.fixture
def monitoring(tmp_path):
    path = tmp_path / "monitoring"
    path.write_text('prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }')
    return path


@pytest.mark.parametrize("loops", [1, 2, 3])
def test_answers_are_the_callers_own_whatever_the_number_of_loops(
    servers, models, monitoring, loops
):
    server = servers.start(
        models={"half": models / "half"}, loops=loops, monitoring_config_file=monitoring
    )
    assert ask_in_parallel(server) == []
    rest = RestClient(server.rest)
    page = metrics(rest)
    count = value(page, ":tensorflow:serving:request_count", model_name="half", status="OK")
    assert count == 800
    rest.close()


def test_the_batching_parameters_of_the_original_are_honoured(
    servers, models, monitoring, tmp_path
):
    parameters = tmp_path / "batching"
    parameters.write_text(
        "max_batch_size { value: 16 } batch_timeout_micros { value: 20000 } "
        "max_enqueued_batches { value: 1000 } num_batch_threads { value: 2 }"
    )
    server = servers.start(
        models={"half": models / "half"},
        enable_batching="true",
        batching_parameters_file=parameters,
        monitoring_config_file=monitoring,
    )
    assert ask_in_parallel(server) == []
    rest = RestClient(server.rest)
    page = metrics(rest)
    runs = value(page, "tensord_batch_rows_count", model_name="half")
    rows = value(page, "tensord_batch_rows_sum", model_name="half")
    assert rows / runs > 4, f"{rows} rows in {runs} runs"
    client = GrpcClient(server.grpc)
    with pytest.raises(grpc.RpcError) as caught:
        client.predict("half", {"x": np.zeros(17, np.float32)})
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "17" in caught.value.details()
    client.close()
    rest.close()


def test_a_full_queue_refuses_at_once_and_says_so(servers, models, tmp_path):
    from test_worker_death import settings_for

    parameters = tmp_path / "batching"
    parameters.write_text(
        "max_batch_size { value: 1 } max_enqueued_batches { value: 4 } "
        "num_batch_threads { value: 1 }"
    )
    server = servers.start(
        models={"sleep_ms": models / "sleep_ms"},
        settings=settings_for(models, "sleep_ms"),
        enable_batching="true",
        batching_parameters_file=parameters,
    )
    client = GrpcClient(server.grpc)
    request = client.predict_request("sleep_ms", {"ms": np.array([300], np.int32)})
    calls = [client.prediction.Predict.future(request, timeout=60) for _ in range(30)]
    codes = [call.exception(timeout=60) and call.code().name for call in calls]
    assert codes.count("UNAVAILABLE") >= 20
    assert codes.count(None) >= 4
    client.close()


def test_a_stateful_model_is_never_batched(servers, models):
    """Forty calls from four clients: forty counted, each answer a different one."""
    server = servers.start(models={"counter": models / "counter"})
    client = GrpcClient(server.grpc)
    request = client.predict_request("counter", {}, signature="incr_counter")
    calls = [client.prediction.Predict.future(request, timeout=60) for _ in range(40)]
    seen = sorted(call.result().outputs["output"].float_val[0] for call in calls)
    assert seen == [float(i) for i in range(1, 41)]
    client.close()


def test_requests_of_other_shapes_do_not_spoil_each_other(servers, models):
    server = servers.start(models={"seqsum": models / "seqsum"})
    client = GrpcClient(server.grpc)
    calls = []
    for i in range(200):
        x = np.ones((1 + i % 3, 1 + i % 7), np.float32)
        request = client.predict_request("seqsum", {"x": x})
        calls.append((x, client.prediction.Predict.future(request, timeout=60)))
    for x, call in calls:
        outputs = call.result().outputs
        assert list(outputs["sum"].float_val) == x.sum(axis=1).tolist()
        assert list(outputs["mean"].float_val) == [1.0] * len(x)
    client.close()


COUPLED = {
    "sorted": np.sort,
    "centred": lambda x: x - x.mean(),
    "share": lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
    "positive": lambda x: x * 0 if (x > 100).any() else x,
    "apart": lambda x: x / 2 + 2,
}


@pytest.mark.parametrize("signature", COUPLED)
def test_unasked_no_request_changes_what_another_gets(servers, models, signature):
    """Requests that wait while the model is busy share runs only where rows do not mix."""
    server = servers.start(models={"coupled": models / "coupled"})
    client = GrpcClient(server.grpc)
    inputs = [np.arange(i, i + 1 + i % 3, dtype=np.float32) for i in range(95, 105)] * 20
    requests = [client.predict_request("coupled", {"x": x}, signature=signature) for x in inputs]
    calls = [client.prediction.Predict.future(request, timeout=60) for request in requests]
    for x, call in zip(inputs, calls, strict=True):
        got = np.array(call.result().outputs["y"].float_val, np.float32)
        np.testing.assert_allclose(got, COUPLED[signature](x), rtol=1e-5)
    client.close()
    (version,) = RestClient(server.rest).get("/v1/models").json()["models"][0]["details"]
    alone = [line.split(":")[0] for line in version["runs_alone"]]
    assert (signature in alone) == (signature != "apart"), version


def test_outputs_that_cannot_be_split_are_right_under_load(servers, models):
    """const_out and scalar_out may not be batched: the server must find that out itself."""
    server = servers.start(models={n: models / n for n in ("const_out", "scalar_out")})
    client = GrpcClient(server.grpc)
    calls = []
    for i in range(200):
        x = np.full(1 + i % 4, i, np.float32)
        request = client.predict_request("scalar_out", {"x": x})
        calls.append((x.sum(), client.prediction.Predict.future(request, timeout=60)))
    for expected, call in calls:
        assert call.result().outputs["sum"].float_val[0] == expected
    keys = np.array([[1], [2]], np.int32)
    calls = [
        client.prediction.Predict.future(
            client.predict_request("const_out", {"keys": keys + i}), timeout=60
        )
        for i in range(100)
    ]
    for i, call in enumerate(calls):
        assert list(call.result().outputs["keys"].int_val) == [1 + i, 2 + i]
        assert list(call.result().outputs["constant"].float_val) == [1.5, 2.5]
    client.close()


def test_both_protocols_at_once_under_load(servers, models):
    server = servers.start(models={"half": models / "half"})
    wrong = []

    def rest_calls():
        rest = RestClient(server.rest)
        for i in range(200):
            answer = rest.predict("half", {"instances": [i, i + 1]})
            if answer.json() != {"predictions": [i / 2 + 2, (i + 1) / 2 + 2]}:
                wrong.append(answer.text)
        rest.close()

    threads = [threading.Thread(target=rest_calls) for _ in range(3)]
    for thread in threads:
        thread.start()
    wrong += ask_in_parallel(server, clients=4, calls=50)
    for thread in threads:
        thread.join()
    assert wrong == []
