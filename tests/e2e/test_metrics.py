# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The metrics page: the original's series as dashboards know them, and ours to the last call."""

import contextlib
import re
import time

import grpc
import numpy as np
import pytest
from clients import error_of
from local_server import eventually
from test_worker_death import settings_for

PAGE = "/monitoring/prometheus/metrics"
MONITORING = "prometheus_config { enable: true }"
COUNT = ":tensorflow:serving:request_count"
ONE = np.array([1.0], np.float32)


class Page:
    """What Prometheus would read."""

    def __init__(self, text):
        self.types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        self.series = {}
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            name, labels, number = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? (\S+)", line).groups()
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
            self.series[name, frozenset(pairs)] = float(number)

    def value(self, name, **labels):
        """The sum over all series of that name that have these labels."""
        wanted = set(labels.items())
        return sum(v for (n, pairs), v in self.series.items() if n == name and wanted <= pairs)

    def labels(self, name, label):
        return {dict(pairs).get(label) for n, pairs in self.series if n == name}


def scrape(rest, path=PAGE):
    answer = rest.get(path)
    assert answer.status_code == 200
    return Page(answer.text)


class Growth:
    """How much a series has grown since this was made."""

    def __init__(self, rest):
        self.rest = rest
        self.before = scrape(rest)

    def of(self, name, **labels):
        return scrape(self.rest).value(name, **labels) - self.before.value(name, **labels)


@pytest.fixture(scope="module")
def server(module_servers, models, tmp_path_factory):
    monitoring = tmp_path_factory.mktemp("monitoring") / "monitoring.config"
    monitoring.write_text(MONITORING)
    names = ["half", "echo", "half_plus_two", "sleep_ms"]
    return module_servers.start(
        models={name: models / name for name in names},
        settings=settings_for(models, "sleep_ms", more="executors: 1 batching { enabled: false }"),
        monitoring_config_file=monitoring,
        rest_api_timeout_in_ms=1000,
    )


@pytest.fixture(autouse=True)
def idle_again(client):
    """A test's last run may still be going; the next test waits for it."""
    yield
    client.predict("sleep_ms", {"ms": np.array([1], np.int32)})


def test_ten_good_three_bad_and_two_late_calls_are_counted_exactly(client, rest):
    growth = Growth(rest)
    number = np.array([7], np.int32)
    for _ in range(6):
        client.predict("echo", {"x": ONE}, signature="float32")
    for _ in range(4):
        rest.predict("echo", {"signature_name": "int32", "inputs": [7]}).raise_for_status()
    for _ in range(2):
        error_of(lambda: client.predict("echo", {"nonsense": number}, signature="int32"))
    assert rest.predict("echo", {"signature_name": "float32", "inputs": "x"}).status_code == 400
    error = error_of(lambda: client.predict("sleep_ms", {"ms": np.array([3000])}, timeout=0.4))
    assert error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INVALID_ARGUMENT)
    late = np.array([2500], np.int32)
    error = error_of(lambda: client.predict("sleep_ms", {"ms": late}, timeout=0.4))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert rest.predict("sleep_ms", {"inputs": [2500]}).status_code == 504

    def requests(model, version, signature, protocol, status):
        labels = {"model_name": model, "version": version, "signature": signature}
        labels |= {"method": "Predict", "protocol": protocol, "status": status}
        counted = growth.of("tensord_requests_total", **labels)
        assert growth.of("tensord_request_microseconds_count", **labels) == counted
        return counted

    assert requests("echo", "1", "float32", "grpc", "OK") == 6
    assert requests("echo", "1", "int32", "rest", "OK") == 4
    assert requests("echo", "1", "int32", "grpc", "INVALID_ARGUMENT") == 2
    assert requests("echo", "1", "float32", "rest", "INVALID_ARGUMENT") == 1
    eventually(
        lambda: requests("sleep_ms", "1", "serving_default", "grpc", "DEADLINE_EXCEEDED") == 1,
        "the late call over gRPC is counted",
        10,
    )
    assert requests("sleep_ms", "1", "serving_default", "rest", "DEADLINE_EXCEEDED") == 1
    assert growth.of("tensord_requests_total", model_name="echo") == 13
    assert growth.of(COUNT, model_name="echo", status="OK") == 10
    assert growth.of(COUNT, model_name="echo", status="INVALID_ARGUMENT") == 3
    assert growth.of(COUNT, model_name="sleep_ms", status="DEADLINE_EXCEEDED") == 2
    assert growth.of(":tensorflow:serving:request_latency_count", model_name="echo") == 10
    assert growth.of(":tensorflow:serving:runtime_latency_count", model_name="echo") == 10


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_the_stages_add_up_to_the_whole_and_to_the_clients_time(client, rest, protocol):
    growth = Growth(rest)
    slept = np.array([100], np.int32)
    started = time.monotonic()
    for _ in range(5):
        if protocol == "grpc":
            client.predict("sleep_ms", {"ms": slept})
        else:
            rest.predict("sleep_ms", {"inputs": [100]}).raise_for_status()
    clients_time = (time.monotonic() - started) * 1e6
    labels = {"model_name": "sleep_ms", "protocol": protocol}
    whole = growth.of("tensord_request_microseconds_sum", **labels)
    stages = {
        stage: growth.of("tensord_stage_microseconds_sum", stage=stage, **labels)
        for stage in ("read", "parse", "queue", "run", "write")
    }
    assert all(time >= 0 for time in stages.values()), stages
    assert sum(stages.values()) == pytest.approx(whole, rel=0.001)
    # What the client's own side took is not the server's.
    assert 0.8 * clients_time <= whole <= clients_time
    assert stages["run"] >= 500_000
    assert stages["run"] > 0.8 * whole


def test_time_in_the_queue_is_the_queues(client, rest):
    """Two calls, one executor: the second waits as long as the first runs."""
    growth = Growth(rest)
    request = client.predict_request("sleep_ms", {"ms": np.array([400], np.int32)})
    calls = [client.prediction.Predict.future(request, timeout=30) for _ in range(2)]
    for call in calls:
        call.result()
    labels = {"model_name": "sleep_ms", "version": "1"}
    queued = growth.of("tensord_stage_microseconds_sum", stage="queue", **labels)
    ran = growth.of("tensord_stage_microseconds_sum", stage="run", **labels)
    assert queued > 200_000
    assert queued < ran, "the first call did not wait, and the second one as long as the first ran"


def test_the_page_has_the_originals_names_types_and_buckets(client, rest):
    client.predict("half", {"x": ONE})
    page = scrape(rest)
    assert page.types[COUNT] == "counter"
    latency = ":tensorflow:serving:request_latency"
    assert page.types[latency] == "histogram"
    assert page.types[":tensorflow:serving:runtime_latency"] == "histogram"
    bounds = page.labels(latency + "_bucket", "le")
    assert len(bounds) == 34
    assert {"+Inf", "32.4", "188.957", "1.27482e+06"} < bounds  # In the original's spelling.
    numbers = sorted(float(bound) for bound in bounds)[:33]
    assert numbers == pytest.approx([10 * 1.8**k for k in range(33)], rel=1e-4)
    (labels,) = {
        frozenset(label for label, _ in pairs if label != "le")
        for name, pairs in page.series
        if name == latency + "_bucket"
    }
    assert labels == {"model_name", "API", "entrypoint"}


def test_every_call_of_the_rest_api_counts_and_of_grpc_what_the_original_counts(client, rest):
    growth = Growth(rest)
    rest.get("/v1/models/half")
    rest.get("/v1/models/half/metadata")
    client.status("half")
    client.metadata("half")
    assert growth.of(COUNT, model_name="half", status="OK") == 2
    labels = {"model_name": "half", "API": "", "entrypoint": "REST"}
    assert growth.of(":tensorflow:serving:request_latency_count", **labels) == 2
    labels = {"model_name": "half", "status": "OK"}
    assert growth.of("tensord_requests_total", method="GetModelStatus", **labels) == 2
    assert growth.of("tensord_requests_total", method="GetModelMetadata", **labels) == 2


def test_names_that_clients_make_up_share_one_series(client, rest):
    error_of(lambda: client.predict("nobody", {"x": ONE}))
    error_of(lambda: client.predict("half", {"x": ONE}, signature="nothing"))
    error_of(lambda: client.predict("half", {"x": ONE}, version=99))
    rest.predict("nobody", {"instances": [1]})
    growth = Growth(rest)
    for i in range(30):
        error_of(lambda i=i: client.predict(f"made_up_{i}", {"x": ONE}))
        error_of(lambda i=i: client.predict("half", {"x": ONE}, signature=f"made_up_{i}"))
        error_of(lambda i=i: client.predict("half", {"x": ONE}, version=1000 + i))
        assert rest.predict(f"made_up_{i}", {"instances": [1]}).status_code == 404
    after = scrape(rest)
    assert set(after.series) == set(growth.before.series)
    assert growth.of("tensord_requests_total", model_name="unknown", status="NOT_FOUND") == 60
    assert growth.of(COUNT, model_name="unknown", status="NOT_FOUND") == 60
    labels = {"model_name": "half", "signature": ""}
    assert growth.of("tensord_requests_total", version="3", **labels) == 30  # No such signature.
    assert growth.of("tensord_requests_total", version="", **labels) == 30  # No such version.


def test_a_client_that_leaves_early_counts_as_cancelled(client, rest):
    growth = Growth(rest)
    request = client.predict_request("sleep_ms", {"ms": np.array([1500], np.int32)})
    call = client.prediction.Predict.future(request, timeout=60)
    labels = {"model_name": "sleep_ms", "version": "1"}
    eventually(lambda: scrape(rest).value("tensord_in_flight_runs", **labels) == 1, "it runs", 20)
    call.cancel()
    with contextlib.suppress(grpc.FutureCancelledError):
        call.result()
    eventually(
        lambda: growth.of("tensord_requests_total", status="CANCELLED", **labels) == 1,
        "the call is counted",
        10,
    )


def test_probes_and_the_page_itself_are_not_counted(rest):
    growth = Growth(rest)
    rest.get("/livez")
    rest.get("/readyz")
    assert growth.of("tensord_requests_total") == 0


def test_what_is_refused_before_it_is_understood_counts_as_other(rest):
    growth = Growth(rest)
    assert rest.get("/nothing/here").status_code == 404
    assert rest.get("/v1/models/half:nonsense").status_code in (400, 404)
    labels = {"model_name": "unknown", "method": "other", "protocol": "rest"}
    assert growth.of("tensord_requests_total", status="NOT_FOUND", **labels) >= 1
    assert growth.of("tensord_requests_total", **labels) == 2


def test_the_page_is_where_the_monitoring_config_says(servers, models, rest_client, tmp_path):
    monitoring = tmp_path / "monitoring.config"
    monitoring.write_text('prometheus_config { enable: true path: "/elsewhere" }')
    server = servers.start(models={"half": models / "half"}, monitoring_config_file=monitoring)
    rest = rest_client(server)
    assert scrape(rest, "/elsewhere").types
    assert rest.get(PAGE).status_code == 404


def test_batches_formed_by_the_operators_parameters_are_counted_as_the_original_counts_them(
    servers, models, grpc_client, rest_client, tmp_path
):
    (tmp_path / "monitoring.config").write_text(MONITORING)
    (tmp_path / "batching.config").write_text(
        "max_batch_size { value: 4 } batch_timeout_micros { value: 20000 }"
        "num_batch_threads { value: 1 }"
    )
    server = servers.start(
        models={"two_in": models / "two_in"},
        enable_batching="true",
        batching_parameters_file=tmp_path / "batching.config",
        monitoring_config_file=tmp_path / "monitoring.config",
    )
    client = grpc_client(server)
    request = client.predict_request("two_in", {"a": ONE, "b": ONE})
    for call in [client.prediction.Predict.future(request, timeout=60) for _ in range(12)]:
        call.result()
    page = scrape(rest_client(server))
    session = ":tensorflow:serving:batching_session:"
    batches = page.value(session + "wrapped_run_count")
    assert 3 <= batches < 12
    assert page.value(session + "processed_batch_size_count") == batches
    assert page.value(session + "processed_batch_size_sum") == 12
    assert page.value(session + "padding_size_count") == batches
    assert page.value(session + "input_batch_size_count") == 24  # Each has two inputs.
    assert page.value(session + "input_batch_size_sum") == 24
    assert page.value(session + "queuing_latency_count", thread_pool_name="") == 12
    assert page.labels(session + "padding_size_count", "execution_batch_size") <= set("1234")
    assert page.value(":tensorflow:core:graph_runs") == batches
    graph_time = ":tensorflow:core:graph_run_time_usecs"
    assert page.value(graph_time + "_histogram_count") == batches
    assert page.value(graph_time) > 0


def test_loads_are_counted_by_directory_and_workers_by_what_became_of_them(rest, models):
    page = scrape(rest)
    path = str(models / "half" / "3")
    load = ":tensorflow:cc:saved_model:load_"
    assert page.value(load + "attempt_count", model_path=path, status="success") == 1
    assert page.value(load + "latency", model_path=path) > 0
    warm_up = ":tensorflow:serving:model_warmup_latency_count"
    assert page.value(warm_up, model_path=path, status="OK") == 1
    for event in ("started", "loaded"):
        labels = {"model_name": "half", "event": event}
        assert page.value("tensord_worker_events_total", **labels) == 1
    assert page.value("tensord_load_microseconds_count", model_name="half") == 1


def test_a_path_of_the_metrics_with_a_query_is_refused_in_the_originals_words(rest):
    answer = rest.get(PAGE + "?name=x")
    assert (answer.status_code, answer.text[:15]) == (400, "Unexpected path")


def test_every_call_under_v1_is_counted_whatever_it_asks_for(rest):
    growth = Growth(rest)
    nobody = {"model_name": "unknown"}
    assert rest.get("/v1/foo").status_code == 400
    assert rest.get("/v1/models").status_code == 200
    assert rest.session.options(rest.base + "/v1/models/half", timeout=60).status_code == 400
    assert rest.get("/elsewhere").status_code == 404
    assert rest.get("/v2").status_code == 200
    assert growth.of(COUNT, status="INVALID_ARGUMENT", **nobody) == 1
    assert growth.of(COUNT, status="FAILED_PRECONDITION", **nobody) == 1
    assert growth.of(COUNT, status="OK", **nobody) == 1
    assert growth.of(COUNT) == 3


def test_totals_are_counters_and_the_rest_is_what_it_says(rest):
    page = scrape(rest)
    for name, kind in page.types.items():
        assert name.endswith("_total") <= (kind == "counter"), name
