# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The access log: a JSON line for each request, whatever became of it."""

import json
import signal

import numpy as np
import pytest
from clients import error_of, raw_exchange
from local_server import eventually

ONE = np.array([1.0], np.float32)
STAGES = ("read_us", "parse_us", "queue_us", "run_us", "write_us")


class Log:
    def __init__(self, path):
        self.path = path

    def lines(self, **wanted):
        """The lines that have these members."""
        if not self.path.exists():
            return []
        every = [json.loads(line) for line in self.path.read_bytes().splitlines()]
        return [line for line in every if wanted.items() <= line.items()]

    def wait_for_target(self, beginning):
        """The line of the one request whose target begins so."""
        (line,) = eventually(
            lambda: [line for line in self.lines() if line["target"].startswith(beginning)],
            f"a line for {beginning}",
            20,
        )
        return line

    def wait(self, n=1, **wanted):
        return eventually(
            lambda: (found := self.lines(**wanted)) and len(found) >= n and found,
            f"{n} lines with {wanted}",
            20,
        )


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "access.log")


@pytest.fixture
def server(servers, models, log):
    return servers.start(models={"half": models / "half"}, access_log=log.path)


def test_a_line_tells_who_asked_what_and_where_the_time_went(server, log, grpc_client, rest_client):
    grpc_client(server).prediction.Predict(
        grpc_client(server).predict_request("half", {"x": ONE}),
        timeout=60,
        metadata=[("x-request-id", "first")],
    )
    rest_client(server).predict(
        "half", {"instances": [1, 2]}, headers={"x-request-id": "second"}
    ).raise_for_status()
    (grpc_line,) = log.wait(request_id="first")
    (rest_line,) = log.wait(request_id="second")
    for line in (grpc_line, rest_line):
        assert line["method"] == "Predict"
        assert line["model"] == "half"
        assert line["version"] == 3
        assert line["signature"] == "serving_default"
        assert line["status"] == "OK"
        assert line["http_status"] == 200
        assert line["delivered"] is True
        assert line["peer"].startswith(("127.0.0.1:", "[::ffff:127.0.0.1]:"))
        assert line["time"].endswith("Z")
        assert abs(sum(line[stage] for stage in STAGES) - line["total_us"]) <= len(STAGES)
        assert 0 < line["runtime_us"] <= line["run_us"]
    assert grpc_line["protocol"] == "grpc"
    assert grpc_line["target"] == "/tensorflow.serving.PredictionService/Predict"
    assert grpc_line["bytes_out"] > 20
    assert rest_line["protocol"] == "rest"
    assert rest_line["http_method"] == "POST"
    assert rest_line["target"] == "/v1/models/half:predict"
    assert rest_line["bytes_in"] == len(b'{"instances": [1, 2]}')
    assert rest_line["rows"] == 2


def test_failures_and_probes_are_lines_too(server, log, grpc_client, rest_client):
    error_of(lambda: grpc_client(server).predict("half", {"nonsense": ONE}))
    rest_client(server).predict("nobody", {"instances": [1]})
    rest_client(server).get("/livez")
    log.wait(protocol="grpc", status="INVALID_ARGUMENT", model="half", version=3)
    (line,) = log.wait(protocol="rest", status="NOT_FOUND", model="nobody")
    assert "version" not in line
    assert line["http_status"] == 404
    log.wait(method="probe", target="/livez")


def test_no_client_can_forge_a_line_or_break_one(server, log):
    raw_exchange(
        server.rest_port,
        b"GET /v1/models/x%0a%22%7D HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
        b'x-request-id: "},{"a":"\xff\r\n\r\n',
    )
    raw_exchange(server.rest_port, b'GET /v1/"}\x1b[31m HTTP/1.1\r\nhost: a\r\n\r\n')
    line = log.wait_for_target("/v1/models/x%0a")
    assert line["request_id"] == '"},{"a":"?'
    assert line["model"] == 'x\n"}'
    log.wait(method="other", http_status=400)
    assert len(log.path.read_bytes().splitlines()) == len(log.lines())


def test_a_long_target_is_cut(server, log, rest_client):
    rest_client(server).get("/v1/models/" + "a" * 5000)
    assert len(log.wait_for_target("/v1/models/aa")["target"]) == 1024


def test_the_log_follows_a_rename_by_itself_and_on_sighup(server, log, rest_client, tmp_path):
    rest = rest_client(server)
    rest.get("/livez")
    log.wait(target="/livez")
    log.path.rename(tmp_path / "access.log.1")
    server.process.send_signal(signal.SIGHUP)
    eventually(log.path.exists, "the file is made anew", 20)
    rest.get("/readyz")
    log.wait(target="/readyz")
    log.path.rename(tmp_path / "access.log.2")

    def written_anew():
        rest.get("/v1/models/half")
        return log.lines(target="/v1/models/half")

    eventually(written_anew, "the log noticed that its file has another name", 20)


def test_nothing_is_lost_when_the_server_stops(servers, models, log, rest_client):
    server = servers.start(models={"half": models / "half"}, access_log=log.path)
    rest = rest_client(server)
    for _ in range(50):
        rest.predict("half", {"instances": [1]}).raise_for_status()
    assert server.stop() == 0
    assert len(log.lines(method="Predict")) == 50


def test_stdout_works_and_there_is_no_log_without_the_option(servers, models, rest_client):
    server = servers.start(models={"half": models / "half"}, access_log="stdout")
    rest_client(server).get("/v1/models/half")
    eventually(lambda: '"target":"/v1/models/half"' in server.log(), "the line is there", 20)
    quiet = servers.start(models={"half": models / "half"})
    rest_client(quiet).get("/v1/models/half")
    assert '"target"' not in quiet.log()


def test_a_log_that_cannot_be_opened_ends_the_start(servers, models, tmp_path):
    server = servers.create(
        models={"half": models / "half"}, access_log=tmp_path / "nowhere" / "access.log"
    ).start()
    assert server.process.wait(60) != 0
    assert "cannot open --access_log=" in server.log()
