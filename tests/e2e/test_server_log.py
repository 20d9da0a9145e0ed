# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The server's own log: it holds nobody up, no client floods it, and every line can be parsed."""

import json
import os
import pathlib
import signal

import grpc
import numpy as np
import pytest
import requests
from clients import SECONDS, GrpcClient
from local_server import eventually

X = np.array([2.0], np.float32)
NOBODY_MAY = 'identity { name: "a" token_sha256: "' + "0" * 64 + '" }\n'
FLOOD = 3000


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "access.rules"
    path.write_text(NOBODY_MAY + 'rule { identity: "a" allow: INFER }\n')
    return path


def refused(server, count, name="half"):
    """So many calls that the rules refuse, each with a long name: kilobytes of log a call."""
    client = GrpcClient(server.grpc)
    request = client.predict_request("half", {"x": X})
    request.model_spec.name = name
    codes = set()
    for _ in range(0, count, 100):
        calls = [client.prediction.Predict.future(request, timeout=SECONDS) for _ in range(100)]
        codes |= {call.exception(timeout=SECONDS).code() for call in calls}
    client.close()
    return codes


def test_a_log_that_nobody_reads_holds_nobody_up(servers, models, rules, tmp_path):
    pipe = tmp_path / "stderr"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    server = servers.start(
        models={"half": models / "half"},
        access_rules_file=rules,
        launcher=("sh", "-c", f'exec "$0" "$@" 2> {pipe}'),
    )
    assert refused(server, FLOOD) == {grpc.StatusCode.UNAUTHENTICATED}
    assert server.status_code("/livez") == 200
    # What TensorFlow says waits for nobody either; what a worker says the front reads.
    (worker,) = server.workers()
    for process in server.zygotes():
        flags = pathlib.Path(f"/proc/{process.pid}/fdinfo/2").read_text().split("flags:")[1]
        assert int(flags.split()[0], 8) & os.O_NONBLOCK, process
    for process in (*server.zygotes(), worker):
        os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: worker.pid not in {w.pid for w in server.workers()}, "it is gone")
    eventually(lambda: server.workers() and server.status_code("/readyz") == 200, "it is back")
    assert server.stop() == 0
    assert not server.left_over()
    text = os.read(reader, 1 << 20).decode()
    assert "audit: refused" in text
    os.close(reader)


def test_a_flood_of_refused_calls_is_counted_not_written(servers, models, rules):
    server = servers.start(models={"half": models / "half"}, access_rules_file=rules)
    assert refused(server, FLOOD) == {grpc.StatusCode.UNAUTHENTICATED}

    def told():
        """Calls with a line of their own, and those counted."""
        lines = [line for line in server.log().splitlines() if "audit:" in line]
        counts = [
            line.split(" more refused calls")[0].rsplit(" ", 1)[1]
            for line in lines
            if " more refused calls" in line
        ]
        return sum("audit: refused" in line for line in lines), sum(int(c) for c in counts)

    eventually(lambda: sum(told()) >= FLOOD, "all of them are told", 20)
    singly, counted = told()
    assert singly + counted == FLOOD
    assert singly >= 1000
    assert counted > 0


def test_lines_and_errors_are_utf_8_whatever_a_client_names(servers, models, rules):
    server = servers.start(
        models={"half": models / "half"}, access_rules_file=rules, log_format="json"
    )
    answer = requests.get(server.rest + "/v1/models/a%FF%00%C3b%20c=d", timeout=SECONDS)
    assert answer.status_code in (400, 401, 403, 404)
    json.loads(answer.content.decode())
    eventually(lambda: "audit: refused" in server.log(), "it is told")
    lines = server.log_path.read_bytes().decode().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines if line.startswith("{"))
    assert sum("audit: refused" in line for line in lines) == 1
