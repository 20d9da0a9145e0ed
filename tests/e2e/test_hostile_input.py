# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Requests made to hurt: each is refused, and the server lives on at its size."""

import gzip
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from clients import RestClient, raw_exchange
from local_server import MIB, eventually

DEPTHS = [50_000, 250_000]


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(
        models={name: models / name for name in ("half", "strings", "echo")}
    )


@pytest.fixture(scope="module")
def client(server):
    client = RestClient(server.rest)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def still_alive(server, client):
    front, size = server.front(), server.front().pss()
    yield
    assert client.predict("half", {"instances": [1]}).json() == {"predictions": [2.5]}
    assert server.front() == front
    eventually(lambda: server.front().pss() < size + 50 * MIB, "the front is back at its size", 20)


@pytest.fixture
def no_growth(server):
    """The front needs no 50 MB more at any moment."""
    front = server.front()
    front.start_peak()
    before = front.peak()
    yield
    assert front.peak() < before + 50 * MIB


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("key", ["instances", "inputs"])
def test_d1_deep_json_is_refused_by_name_of_the_limit(client, no_growth, key, depth):
    body = f'{{"{key}": '.encode() + b"[" * depth + b"0.5" + b"]" * depth + b"}"
    answer = client.predict("half", body)
    assert answer.status_code == 400
    assert "64" in answer.json()["error"]


DEEP_ELSEWHERE = {
    "classify": ("/v1/models/half:classify", b'{"examples": [{"x": %s}]}'),
    "regress": ("/v1/models/half:regress", b'{"examples": %s}'),
    "context": ("/v1/models/half:classify", b'{"context": {"x": %s}, "examples": [{}]}'),
    "v2 data": (
        "/v2/models/half/infer",
        b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": %s}]}',
    ),
    "v2 beside": ("/v2/models/half/infer", b'{"parameters": {"a": %s}, "inputs": []}'),
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("where", DEEP_ELSEWHERE)
def test_d1_deep_json_in_other_calls_is_refused_as_well(client, no_growth, where, depth):
    path, body = DEEP_ELSEWHERE[where]
    answer = client.post(path, body % (b"[" * depth + b"0.5" + b"]" * depth))
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("depth", DEPTHS)
def test_d1_deep_json_beside_the_point_or_unfinished_does_no_harm(client, no_growth, depth):
    body = b'{"other": ' + b"[" * depth + b"]" * depth + b', "instances": [1]}'
    assert client.predict("half", body).status_code in {200, 400}
    assert client.predict("half", b'{"instances": ' + b"[" * depth).status_code == 400
    assert client.predict("half", b"[" * depth).status_code == 400
    assert client.predict("half", b'{"a":' * depth).status_code == 400


def test_d1_a_depth_that_is_no_attack_reaches_the_shape_check(client):
    body = b'{"instances": ' + b"[" * 8 + b"0.5" + b"]" * 8 + b"}"
    answer = client.predict("echo", body)
    assert answer.status_code == 200


def test_d2_gzip_bombs_end_at_the_limit_and_do_not_add_up(servers, models):
    """64 at once, 100 KB each that would be 110 MB of zeros."""
    server = servers.start(models={"half": models / "half"})
    bomb = gzip.compress(b"\0" * (110 * MIB), 9)

    def post(_turn):
        own = RestClient(server.rest)
        try:
            answer = own.predict("half", bomb, headers={"Content-Encoding": "gzip"})
            return answer.status_code
        except requests.RequestException as error:
            return repr(error)
        finally:
            own.close()

    front = server.front()
    front.start_peak()
    size = front.peak()
    assert post(0) == 413, "one alone is too large by itself"
    with ThreadPoolExecutor(64) as pool:
        codes = list(pool.map(post, range(64)))
    assert set(codes) <= {400, 413, 429, 503}, codes
    grown = front.peak() - size
    assert grown < 256 * MIB, f"{grown // MIB} MiB more at the peak"
    small = gzip.compress(b'{"instances": [1]}' + b" " * MIB)
    own = RestClient(server.rest)
    assert own.predict("half", small, headers={"Content-Encoding": "gzip"}).status_code == 200
    own.close()


@pytest.mark.parametrize(
    "body",
    [b"not gzip at all", gzip.compress(b'{"instances": [1]}')[:-6], b"\x1f\x8b"],
    ids=["noise", "cut", "two bytes"],
)
def test_a_body_that_is_no_gzip_is_a_bad_request(client, body):
    answer = client.predict("half", body, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 400


HEADER = b"POST /v1/models/half:predict HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        HEADER + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}   ",
        HEADER + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEADER + b"Content-Length: -1\r\n\r\n",
        HEADER + b"Content-Length: 99999999999999999999\r\n\r\n",
        HEADER + b"Transfer-Encoding: chunked\r\n\r\nzzz\r\n",
        HEADER + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
        HEADER + b"".join(b"X%d: y\r\n" % i for i in range(5000)) + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS to a plain port.
        b"\0" * 1000,
        b"GET / HTTP/9.9\r\n\r\n",
    ],
    ids=range(11),
)
def test_malformed_http_is_answered_with_an_error_or_a_closed_connection(server, request_bytes):
    answer = raw_exchange(server.rest_port, request_bytes, seconds=5)
    assert not answer.startswith(b"HTTP/1.1 2")


def test_noise_on_the_grpc_port_closes_that_connection_alone(server):
    for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" * 3):
        raw_exchange(server.grpc_port, noise, seconds=5)


def test_connections_that_say_nothing_keep_nobody_out(server, client):
    """Slow readers and talkers hold their connection and nothing else."""
    silent = [socket.create_connection(("127.0.0.1", server.rest_port)) for _ in range(300)]
    for connection in silent:
        connection.sendall(b"POST /v1/models/half:predict HTTP/1.1\r\nHost: x\r\nContent-Le")
    for _ in range(20):
        assert client.predict("half", {"instances": [1]}).status_code == 200
    for connection in silent:
        connection.close()
