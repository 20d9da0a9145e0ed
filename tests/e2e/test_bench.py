# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord bench` against the real server: what it counts, what it says, how it ends."""

import base64
import contextlib
import json
import signal
import socket
import subprocess
import threading
import zlib

import numpy as np
import pytest
from clients import GrpcClient, RestClient
from local_server import BIN, eventually, free_port
from test_metrics import MONITORING, scrape
from test_tls import Authority
from test_worker_death import settings_for

ALL = ("half", "two_in", "strings")


@pytest.fixture(scope="module")
def server(module_servers, models, tmp_path_factory):
    monitoring = tmp_path_factory.mktemp("monitoring") / "monitoring.config"
    monitoring.write_text(MONITORING)
    return module_servers.start(
        models={name: models / name for name in ALL}, monitoring_config_file=monitoring
    )


class Bench:
    """A finished run: its exit code, words and JSON report."""

    def __init__(self, folder, *arguments):
        self.path = folder / "report.json"
        command = [str(BIN / "tensord"), "bench", *map(str, arguments), "--json", str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.report = json.loads(self.path.read_text()) if self.path.exists() else None


@pytest.fixture
def bench(tmp_path, server):
    """bench("--model", "half"): over gRPC, or with rest=True; short and without warm-up."""

    def run(*arguments, rest=False, port=None):
        own_port = server.rest_port if rest else server.grpc_port
        common = ["--port", port or own_port, "--warm_up_seconds", 0, "--seconds", 1]
        return Bench(tmp_path, *common, *(["--rest"] if rest else []), *arguments)

    return run


def predicts(server, model):
    """How many Predict calls of a model the server has answered well."""
    with contextlib.closing(RestClient(server.rest)) as rest:
        page = scrape(rest)
    labels = {"model_name": model, "method": "Predict", "status": "OK"}
    return page.value("tensord_requests_total", **labels)


def histogram_counts(text):
    """The counts of an HdrHistogram in its V2 compressed form, written from the format's page."""
    plain = zlib.decompress(base64.b64decode(text)[8:])
    counts, at = [], 40
    while at < len(plain):
        value = shift = 0
        while True:
            byte = plain[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        value = (value >> 1) ^ -(value & 1)
        counts += [0] * -value if value < 0 else [value]
    return counts


@pytest.mark.parametrize("rest", [False, True])
def test_what_it_counts_is_what_the_server_counts(bench, server, rest):
    before = predicts(server, "half")
    run = bench("--model", "half", "--requests", 500, "--in_flight", 8, rest=rest)
    assert run.code == 0, run.err
    assert run.report["answered"] == 500
    assert run.report["failed"] == 0
    assert predicts(server, "half") - before == run.report["sent_in_all"] == 501
    assert sum(histogram_counts(run.report["latency"]["hdr_histogram_ns"])) == 500
    assert 0 < run.report["p50_us"] <= run.report["p99_us"] <= run.report["max_us"]
    assert "500 answered" in run.out


def test_inputs_are_made_from_what_the_server_says_of_a_model(bench):
    for model in ALL:
        for rest in (False, True):
            run = bench("--model", model, "--rows", 2, "--requests", 5, rest=rest)
            assert run.code == 0, (model, run.err)
            assert run.report["answered"] == 5


@pytest.mark.parametrize("rest", [False, True])
def test_the_open_inference_protocol_is_driven_as_well(bench, server, rest):
    for model in ALL:
        run = bench("--oip", "--model", model, "--rows", 2, "--requests", 5, rest=rest)
        assert run.code == 0, (model, run.err)
        assert run.report["answered"] == 5
    named = ["--signature", "serving_default", "--input", "x:float:2"]
    assert bench("--oip", "--model", "half", "--requests", 5, *named, rest=rest).code == 0
    run = bench("--oip", "--model", "nobody", rest=rest)
    assert (run.code, "nobody" in run.err) == (1, True)
    run = bench("--oip", "--model", "half", "--signature", "other", rest=rest)
    assert (run.code, "give --input" in run.err) == (1, True)


@pytest.fixture(scope="module")
def behind_tls(module_servers, models, tmp_path_factory):
    """A server, the authority that signed its certificate, and another."""
    folder = tmp_path_factory.mktemp("tls")
    authority, other = Authority(folder / "ca"), Authority(folder / "other")
    pair = authority.sign(folder / "server", "server")
    flags = {"tls_certificate_file": pair.certificate, "tls_key_file": pair.key}
    server = module_servers.create(models={"half": models / "half"}, **flags).start()
    eventually(lambda: "LOADING -> AVAILABLE" in server.log(), "it loads")
    eventually(lambda: "listening: gRPC" in server.log(), "its ports are open")
    return server, authority, other


@pytest.mark.parametrize("rest", [False, True])
def test_a_server_behind_tls_is_driven_if_its_certificate_is_right(
    behind_tls, bench, tmp_path, rest
):
    server, authority, other = behind_tls
    port = server.rest_port if rest else server.grpc_port
    ask = ["--model", "half", "--requests", 300, "--in_flight", 4, "--rows", 5000]
    run = bench("--ca", authority.certificate, "--oip", *ask, rest=rest, port=port)
    assert (run.code, run.report["answered"]) == (0, 300), run.err
    run = bench("--ca", authority.certificate, *ask, rest=rest, port=port)
    assert run.code == 0, run.err
    assert (run.report["answered"], run.report["failed"]) == (300, 0)
    for host in ("localhost", "127.0.0.1"):
        wrong = bench("--ca", other.certificate, "--host", host, *ask, rest=rest, port=port)
        assert (wrong.code, "certificate is not accepted" in wrong.err) == (1, True), wrong.err
    plain = bench(*ask, rest=rest, port=port)
    assert plain.code == 1, plain.err
    none = bench("--ca", tmp_path / "nothing.pem", *ask, rest=rest, port=port)
    assert (none.code, "nothing.pem" in none.err) == (1, True), none.err


def test_failures_are_counted_by_code_with_the_servers_words(bench):
    wrong = ("--model", "half", "--input", "y:float:1", "--requests", 50)
    run = bench(*wrong)
    assert run.code == 1
    assert "INVALID_ARGUMENT" in run.err
    assert run.report is None, "one request of each kind is tried before the load"
    run = bench(*wrong, "--try_first=false")
    assert run.code == 1
    assert "50 of 50 requests failed" in run.err
    assert run.report["failed"] == 50
    assert run.report["errors"]["INVALID_ARGUMENT"]["count"] == 50
    assert "y" in run.report["errors"]["INVALID_ARGUMENT"]["first"]
    run = bench(*wrong, "--try_first=false", "--max_failed_percent", 100, rest=True)
    assert run.code == 0
    assert run.report["errors"]["HTTP 400"]["count"] == 50


@pytest.mark.parametrize("pacing", ["poisson", "constant"])
def test_an_open_loop_keeps_its_rate(bench, pacing):
    arguments = ("--rate", 200, "--pacing", pacing, "--seconds", 3, "--threads", 2)
    run = bench("--model", "half", "--connections", 4, *arguments)
    assert run.code == 0, run.err
    offered = run.report["answered"] + run.report["failed"]
    # Poisson: 600 with a standard deviation of 24.
    assert 450 < offered < 750
    if pacing == "constant":
        assert 598 <= offered <= 602
    assert run.report["latency"]["count"] == run.report["answered"]


def test_several_rates_make_a_table(bench):
    run = bench("--model", "half", "--rates", "50,100", rest=True)
    assert run.code == 0, run.err
    assert [point["offered_per_second"] for point in run.report["points"]] == [50, 100]
    rows = [line.split() for line in run.out.splitlines()]
    assert [row[0] for row in rows if row and row[0] in ("50", "100")] == ["50", "100"]


def test_a_mix_shares_the_load_by_weight(bench, tmp_path):
    body = GrpcClient.predict_request("two_in", {"a": np.float32([1]), "b": np.float32([2])})
    (tmp_path / "two.pb").write_bytes(body.SerializeToString())
    mix = tmp_path / "mix.txt"
    mix.write_text(f"# a comment\nhalf=3\ntwo=1:{tmp_path}/two.pb deadline_ms=60000\n")
    run = bench("--mix", mix, "--requests", 400)
    assert run.code == 0, run.err
    half, two = run.report["requests"]
    assert half["answered"] + two["answered"] == 400
    assert 240 < half["answered"] < 360
    assert two["deadline_ms"] == 60_000
    assert two["latency"]["count"] == two["answered"]


def test_recorded_requests_are_replayed(bench, server, tmp_path):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    request = GrpcClient.predict_request("half", {"x": np.float32([1])})
    log.predict_log.request.CopyFrom(request)
    path = tmp_path / "requests"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(3):
            writer.write(log.SerializeToString())
    run = bench("--body_file", path, "--model", "half", "--requests", 9)
    assert run.code == 0, run.err
    assert run.report["requests"][0]["variants"] == 3


def test_one_shot_connections_are_new_for_each_request(bench):
    arguments = ("--one_shot", "--requests", 40, "--in_flight", 4)
    run = bench("--model", "half", *arguments, rest=True)
    assert run.code == 0, run.err
    assert run.report["answered"] == 40


def test_hundreds_of_connections_are_used_at_once(bench):
    run = bench("--model", "half", "--connections", 400, "--in_flight", 400, "--threads", 2)
    assert run.code == 0, run.err
    assert run.report["answered"] >= 400


def test_overload_tells_goodput_and_refusals(servers, models, tmp_path, bench):
    settings = settings_for(models, "sleep_ms", more="executors: 1 batching { enabled: false }")
    server = servers.start(models={"sleep_ms": models / "sleep_ms"}, settings=settings)
    body = GrpcClient.predict_request("sleep_ms", {"ms": np.int32([20])})
    (tmp_path / "sleep.pb").write_bytes(body.SerializeToString())
    run = bench(
        *("--request", f"sleep=1:{tmp_path}/sleep.pb", "--overload", "--factors", "0.5,4"),
        *("--in_flight", 8, "--seconds", 2, "--deadline_ms", 200),
        port=server.grpc_port,
    )
    assert run.code == 0, run.err
    capacity, half, four = run.report["points"]
    assert capacity["pacing"] == "closed"
    assert half["load"] == 0.5
    assert half["offered_per_second"] < capacity["requests_per_second"]
    assert four["failed"] > 0
    assert four["latency"]["max_us"] <= 200_000
    assert "goodput/s" in run.out


def test_an_unknown_model_is_named_with_those_that_there_are(bench):
    run = bench("--model", "nobody", rest=True)
    assert run.code == 1
    assert "'nobody'" in run.err
    assert "half" in run.err
    assert "strings" in run.err


class Stranger(threading.Thread):
    """Says the same to everyone who connects, whatever is asked."""

    def __init__(self, words):
        super().__init__(daemon=True)
        self.words = words
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(self.words)

    def __enter__(self):
        self.start()
        return self.port

    def __exit__(self, *_):
        self.listener.close()


def test_the_wrong_port_is_told_from_the_right_one(bench, server):
    with Stranger(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        assert "add --rest" in bench("--model", "half", port=port).err
    with Stranger(b"\0\0\0\4\0\0\0\0\0") as port:
        assert "leave out --rest" in bench("--model", "half", rest=True, port=port).err
    with Stranger(b"\x15\3\1\0\2\2\x46") as port:
        assert "TLS" in bench("--model", "half", port=port).err
    refused = bench("--model", "half", rest=True, port=server.grpc_port)
    assert refused.code == 1
    assert "--rest_api_port" in refused.err
    nobody = bench("--model", "half", port=free_port())
    assert nobody.code == 1
    assert "Connection refused" in nobody.err
    assert "--port" in nobody.err


@pytest.mark.parametrize("rest", [False, True])
def test_a_server_that_dies_ends_it_with_a_sentence(servers, models, tmp_path, rest):
    monitoring = tmp_path / "monitoring.config"
    monitoring.write_text(MONITORING)
    server = servers.start(models={"half": models / "half"}, monitoring_config_file=monitoring)
    port = server.rest_port if rest else server.grpc_port
    arguments = ["--port", port, "--model", "half", "--seconds", 600, "--warm_up_seconds", 0]
    report = tmp_path / "report.json"
    command = [BIN / "tensord", "bench", *arguments, "--json", report, *(["--rest"] * rest)]
    running = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True)
    while predicts(server, "half") < 100:
        assert running.poll() is None
    server.kill()
    _, err = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "has gone" in err
    assert json.loads(report.read_text())["answered"] > 0


def test_an_interrupt_ends_the_measurement_and_reports_it(server, tmp_path):
    report = tmp_path / "report.json"
    arguments = ["--port", server.grpc_port, "--model", "half", "--seconds", 600, "--json", report]
    command = [BIN / "tensord", "bench", *arguments, "--warm_up_seconds", 0]
    before = predicts(server, "half")
    running = subprocess.Popen([str(part) for part in command])
    while predicts(server, "half") < before + 100:
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 0
    assert json.loads(report.read_text())["answered"] > 0


def test_wrong_usage_is_explained(bench):
    for arguments, words in (
        (["--modle", "half"], "did you mean --model?"),
        (["--rate", "fast"], "a number from 0"),
        (["--rate", "1", "--overload"], "exclude each other"),
        (["--one_shot"], "needs --rest"),
        (["--mix", "/no/such/file"], "/no/such/file"),
        (["--request", "a=b"], "must be a number"),
    ):
        run = bench(*arguments)
        assert run.code in (1, 2)
        assert words in run.err, run.err
