# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Attacks on HTTP/2: each connection is cut early, cheaply, and the server serves on."""

import struct

import h2
import pytest


def still_serves(echo):
    connection = echo.connect()
    connection.sendall(
        h2.hello()
        + h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.request(more=h2.GRPC))
        + h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"alive"))
    )
    while True:
        kind, _, _, payload = h2.read_frame(connection)
        if kind == h2.DATA:
            assert payload == h2.message(b"alive")
            break
    connection.close()


def cost_of(echo, action):
    before = echo.stats()
    result = action()
    after = echo.wait_for(lambda stats: stats["connections"] == 1)
    return result, (after["cpu_us"] - before["cpu_us"]) / 1e6, after


def test_rapid_reset_200k(echo):
    connection = echo.connect()
    connection.sendall(h2.hello())
    reset = struct.pack(">I", 8)
    block = h2.request(more=h2.GRPC)

    def pairs():
        for first in range(0, 200_000, 500):
            yield b"".join(
                h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * i + 1, block)
                + h2.frame(h2.RST_STREAM, 0, 2 * i + 1, reset)
                for i in range(first, first + 500)
            )

    (_, cut), cpu, stats = cost_of(echo, lambda: h2.flood(connection, pairs()))
    assert cut
    assert stats["heads"] < 1500, "requests that reached the service"
    assert cpu < 1, "sanitizers included"
    still_serves(echo)


def test_continuation_flood(echo):
    connection = echo.connect()
    connection.sendall(h2.hello() + h2.frame(h2.HEADERS, 0, 1, h2.request()))
    filler = h2.literal("x", "y" * 16000)
    chunks = (h2.frame(h2.CONTINUATION, 0, 1, filler) for _ in range(4000))
    (_, cut), cpu, stats = cost_of(echo, lambda: h2.flood(connection, chunks))
    assert cut
    assert stats["heads"] == 0
    assert cpu < 1
    still_serves(echo)


def test_empty_continuations(echo):
    connection = echo.connect()
    connection.sendall(h2.hello() + h2.frame(h2.HEADERS, 0, 1, b""))
    chunks = (h2.frame(h2.CONTINUATION, 0, 1) for _ in range(100_000))
    (_, cut), cpu, _ = cost_of(echo, lambda: h2.flood(connection, chunks))
    assert cut
    assert cpu < 1


def test_header_string_declared_1_gib(echo):
    connection = echo.connect()
    block = h2.request() + b"\0" + h2.integer(1, 7) + b"x" + h2.integer(1 << 30, 7)
    connection.sendall(h2.hello() + h2.frame(h2.HEADERS, 0, 1, block))
    chunks = (h2.frame(h2.CONTINUATION, 0, 1, b"y" * 16384) for _ in range(1000))
    (_, cut), cpu, stats = cost_of(echo, lambda: h2.flood(connection, chunks))
    assert cut
    assert cpu < 1
    assert stats["max_rss_kb"] < 300_000
    still_serves(echo)


def test_hpack_bomb(echo):
    """One entry of 4 KB in the table, then a million references to it at a byte each."""
    connection = echo.connect()
    entry = b"\x40" + h2.integer(1, 7) + b"x" + h2.integer(4000, 7) + b"y" * 4000
    block = h2.request() + entry + b"\xbe" * 900_000
    connection.sendall(h2.hello())
    chunks = [h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, block)]
    (_, cut), cpu, stats = cost_of(echo, lambda: h2.flood(connection, chunks))
    assert cut
    assert cpu < 1
    assert stats["heads"] == 0


@pytest.mark.parametrize(
    "flooding",
    [
        h2.frame(h2.PING, 0, 0, b"12345678"),
        h2.frame(h2.SETTINGS),
        h2.frame(h2.SETTINGS, 0, 0, struct.pack(">HI", 1, 4096) * 30),
        h2.frame(h2.PRIORITY, 0, 5, b"\0\0\0\0\7"),
        h2.frame(h2.DATA, 0, 1),
        h2.frame(0xEE, 0, 0, b""),
        h2.frame(0xEE, 0, 1, b"x" * 20),
    ],
    ids=["ping", "settings", "table sizes", "priority", "empty data", "unknown", "unknown long"],
)
def test_floods_of_idle_frames(echo, flooding):
    connection = echo.connect()
    connection.sendall(h2.hello() + h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.request()))
    (_, cut), cpu, _ = cost_of(echo, lambda: h2.flood(connection, [flooding * 500] * 400))
    assert cut
    assert cpu < 2
    still_serves(echo)


def test_frames_for_closed_streams(echo):
    connection = echo.connect()
    ended = h2.END_HEADERS | h2.END_STREAM
    connection.sendall(h2.hello() + h2.frame(h2.HEADERS, ended, 1, h2.request("/x", method="GET")))
    while h2.read_frame(connection)[0] != h2.DATA:
        pass
    connection.sendall(h2.frame(h2.DATA, 0, 1, b"late"))
    frames = h2.read_until_closed(connection)
    assert frames[-1][0] == h2.GOAWAY


def test_zero_window_readers_hold_little(start_echo):
    """A thousand calls that each ask for 10 MiB and never read."""
    echo = start_echo("--budget_bytes", str(512 << 20))
    connections = []
    for _ in range(10):
        connection = echo.connect()
        connection.sendall(h2.hello(settings=[(4, 0)]))  # INITIAL_WINDOW_SIZE
        for i in range(100):
            connection.sendall(
                h2.frame(
                    h2.HEADERS, h2.END_HEADERS, 2 * i + 1, h2.request("/echo.Echo/Big", h2.GRPC)
                )
                + h2.frame(h2.DATA, h2.END_STREAM, 2 * i + 1, h2.message(b"10485760"))
            )
        connections.append(connection)
    stats = echo.wait_for(lambda stats: stats["requests"] >= 1000)
    assert stats["budget_used"] <= 512 << 20
    still_serves(echo)
    for connection in connections:
        connection.close()
    echo.wait_for(lambda stats: stats["connections"] == 1 and stats["budget_used"] == 0)


def test_announced_messages_cost_nothing(echo):
    """A thousand messages of 1 GiB announced on one connection, five bytes sent of each."""
    connection = echo.connect()
    connection.sendall(h2.hello())
    claim = b"\0" + struct.pack(">I", 1 << 30)
    for i in range(1000):
        connection.sendall(
            h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * i + 1, h2.request(more=h2.GRPC))
            + h2.frame(h2.DATA, 0, 2 * i + 1, claim)
        )
    stats = echo.wait_for(lambda stats: stats["heads"] >= 1000)
    assert stats["budget_used"] < 100_000
    assert stats["max_rss_kb"] < 400_000
    still_serves(echo)
    connection.close()


def test_message_lengths_over_the_limit(start_echo):
    echo = start_echo("--body_bytes_max", "1000000")
    connection = echo.connect()
    connection.sendall(
        h2.hello()
        + h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.request(more=h2.GRPC))
        + h2.frame(h2.DATA, 0, 1, b"\0\xff\xff\xff\xff")
    )
    kinds = []
    while True:
        kind, flags, stream, payload = h2.read_frame(connection)
        kinds.append(kind)
        if kind == h2.HEADERS:
            assert flags & h2.END_STREAM
            assert b"limit" in payload or stream == 1
        if kind == h2.RST_STREAM:
            assert struct.unpack(">I", payload) == (0,), "the client may stop sending"
            break
    assert h2.HEADERS in kinds
    connection.close()


def test_too_many_streams(echo):
    connection = echo.connect()
    connection.sendall(h2.hello())
    for i in range(1100):
        try:
            connection.sendall(h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * i + 1, h2.request()))
        except ConnectionError:
            break
    stats = echo.wait_for(lambda stats: stats["connections"] == 1 or stats["heads"] >= 1024)
    assert stats["heads"] <= 1024
    connection.close()


def test_stream_numbers_backwards(echo):
    connection = echo.connect()
    ended = h2.END_HEADERS | h2.END_STREAM
    connection.sendall(
        h2.hello()
        + h2.frame(h2.HEADERS, ended, 5, h2.request("/x", method="GET"))
        + h2.frame(h2.HEADERS, ended, 3, h2.request("/x", method="GET"))
    )
    frames = h2.read_until_closed(connection)
    assert frames[-1][0] == h2.GOAWAY
