# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that no honest client sends: floods end their connection, and nobody else notices."""

import contextlib
import socket
import struct
import time

import pytest
from clients import RestClient
from local_server import MIB, eventually

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9,
)  # fmt: skip
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """One header field without compression or indexing."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


PREDICT_HEAD = b"".join(
    [
        literal(b":method", b"POST"),
        literal(b":scheme", b"http"),
        literal(b":path", b"/tensorflow.serving.PredictionService/Predict"),
        literal(b":authority", b"x"),
        literal(b"content-type", b"application/grpc"),
        literal(b"te", b"trailers"),
    ]
)


class Connection:
    """A client of raw frames that reads whatever comes, and notes how it ends."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.received = b""
        self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data):
        """False once the server has closed the connection."""
        try:
            self.socket.sendall(data)
            self._read(0)
        except OSError:
            return False
        return True

    def _read(self, seconds):
        self.socket.settimeout(seconds or 0.001)
        with contextlib.suppress(TimeoutError):
            while piece := self.socket.recv(65536):
                self.received += piece
            raise ConnectionError("closed")
        self.socket.settimeout(30)

    def wait_closed(self, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self._read(0.2)
            except OSError:
                return True
        return False

    def frames(self):
        """(kind, flags, stream, payload) of all whole frames so far."""
        data, found = self.received, []
        while len(data) >= 9:
            size = int.from_bytes(data[:3], "big")
            if len(data) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", data[3:9])
            found.append((kind, flags, stream, data[9 : 9 + size]))
            data = data[9 + size :]
        return found

    def goaway_codes(self):
        return [int.from_bytes(f[3][4:8], "big") for f in self.frames() if f[0] == GOAWAY]

    def close(self):
        self.socket.close()


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(models={"half": models / "half"})


@pytest.fixture
def connect(server):
    opened = []

    def open_one():
        opened.append(Connection(server.grpc_port))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()


@pytest.fixture(autouse=True)
def nobody_else_notices(server):
    rest = RestClient(server.rest)
    front, size = server.front(), server.front().pss()
    yield
    assert rest.predict("half", {"instances": [1]}).json() == {"predictions": [2.5]}
    assert server.front() == front
    eventually(lambda: server.front().pss() < size + 30 * MIB, "the front is back at its size", 20)
    rest.close()


def test_a_rapid_reset_flood_ends_its_connection(connect):
    """CVE-2023-44487: streams opened and reset faster than they can be answered."""
    connection = connect()
    stream, alive = 1, True
    for _ in range(200):
        burst = b""
        for _ in range(100):
            burst += frame(HEADERS, END_HEADERS, stream, PREDICT_HEAD)
            burst += frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
            stream += 2
        alive = connection.send(burst)
        if not alive:
            break
    assert not alive or connection.wait_closed() or connection.goaway_codes()


@pytest.mark.parametrize("empty", [False, True])
def test_a_continuation_flood_ends_its_connection(connect, empty):
    """CVE-2024-27316: one header block without an end."""
    connection = connect()
    connection.send(frame(HEADERS, 0, 1, PREDICT_HEAD))
    piece = b"" if empty else b"".join(literal(b"x-%d" % i, b"y" * 100) for i in range(100))
    burst = frame(CONTINUATION, 0, 1, piece) * 20
    alive = True
    for _ in range(500):
        alive = connection.send(burst)
        if not alive:
            break
    assert not alive or connection.wait_closed() or connection.goaway_codes()


@pytest.mark.parametrize(
    "flood",
    [
        frame(PING, 0, 0, b"12345678"),
        frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)),
        frame(PRIORITY, 0, 1, b"\0\0\0\0\0"),
        frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"),
    ],
    ids=["ping", "settings", "priority", "window"],
)
def test_a_flood_of_control_frames_grows_nothing(connect, server, flood):
    """Answered, dropped or the end of the connection: what must not happen is that it piles up."""
    size = server.front().pss()
    connection = connect()
    for _ in range(100):
        if not connection.send(flood * 200):
            break
    assert server.front().pss() < size + 30 * MIB


@pytest.mark.parametrize(
    "nonsense",
    [
        frame(DATA, 0, 1, b"x"),  # On a stream that is not open.
        frame(HEADERS, END_HEADERS, 2, PREDICT_HEAD),  # A client's stream is odd.
        frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"),  # No HPACK.
        frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\0"),
        frame(RST_STREAM, 0, 1, struct.pack(">I", 8)),  # Of an idle stream.
        frame(SETTINGS, ACK, 0, b"123456"),
        frame(CONTINUATION, END_HEADERS, 1, b""),
        b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",  # 16 MB announced.
    ],
    ids=range(8),
)
def test_a_protocol_error_is_told_and_ends_the_connection(connect, nonsense):
    connection = connect()
    connection.send(nonsense)
    assert connection.wait_closed() or connection.goaway_codes()
    assert 0 not in connection.goaway_codes()


def test_a_message_that_announces_more_than_comes_is_refused_or_waits_alone(connect):
    """Two GiB announced by the gRPC prefix, ten bytes sent: nothing is set aside for the rest."""
    connection = connect()
    connection.send(frame(HEADERS, END_HEADERS, 1, PREDICT_HEAD))
    connection.send(frame(DATA, 0, 1, b"\0" + struct.pack(">I", 2**31 - 1) + b"0123456789"))
    time.sleep(0.5)


def test_streams_beyond_the_limit_are_refused_one_by_one(connect):
    connection = connect()
    heads = [frame(HEADERS, END_HEADERS, 1 + 2 * i, PREDICT_HEAD) for i in range(3000)]
    connection.send(b"".join(heads))
    time.sleep(0.5)
    connection.send(frame(PING, 0, 0, b"12345678"))
    refused = [f for f in connection.frames() if f[0] == RST_STREAM]
    assert refused or connection.goaway_codes()


def test_frames_cut_at_every_byte_mean_the_same(server):
    """A request sent one byte at a time is answered like any other."""
    from clients import GrpcClient

    request = GrpcClient.predict_request("half", {"x": [1.0]}).SerializeToString()
    connection = Connection(server.grpc_port)
    message = b"\0" + struct.pack(">I", len(request)) + request
    data = frame(HEADERS, END_HEADERS, 1, PREDICT_HEAD) + frame(DATA, END_STREAM, 1, message)
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in data:
        connection.socket.sendall(bytes([byte]))

    def answered():
        connection.send(b"")
        kinds = [f[0] for f in connection.frames() if f[2] == 1]
        return DATA in kinds and kinds.count(HEADERS) == 2

    eventually(answered, "headers, data and trailers came", 20)
    connection.close()
