# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as no library would send it."""

import contextlib
import gzip
import socket
import zlib

import pytest


def exchange(connection, data, until_closed=True):
    if data:
        connection.sendall(data)
    answer = b""
    try:
        while until_closed or b"\r\n\r\n" not in answer:
            some = connection.recv(1 << 16)
            if not some:
                break
            answer += some
    except ConnectionError:
        pass
    return answer


def post(body, *fields, target="/x"):
    lines = [f"POST {target} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


SMUGGLING = {
    "both lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, other order": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "equal lengths": b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
    "hidden chunked": b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "folded": b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "LF only": b"Content-Length: 0\n\n",
    "LF in the middle": b"A: b\nContent-Length: 0\r\n\r\n",
    "CR only": b"A: b\rContent-Length: 0\r\n\r\n",
    "space before colon": b"Content-Length : 4\r\n\r\nabcd",
    "NUL": b"A: b\0c\r\n\r\n",
}


@pytest.mark.parametrize("fields", SMUGGLING.values(), ids=SMUGGLING.keys())
def test_smuggling_is_refused_and_the_connection_closed(echo, fields):
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    answer = exchange(echo.connect(), b"POST /x HTTP/1.1\r\nHost: a\r\n" + fields + smuggled)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"/smuggled" not in answer
    assert echo.stats()["requests"] == 0


def test_get_with_a_body(echo):
    answer = exchange(
        echo.connect(),
        b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody",
    )
    assert answer.endswith(b"GET /x 4 false\nbody")


def test_pipelining_10k(echo):
    connection = echo.connect()
    requests = b"".join(f"GET /{i} HTTP/1.1\r\nHost: a\r\n\r\n".encode() for i in range(10_000))
    connection.setblocking(False)
    answers = b""
    sent = 0
    # Another client is served meanwhile.
    other = echo.connect()
    while answers.count(b" 0 false\n") < 10_000:
        with contextlib.suppress(BlockingIOError):
            sent += connection.send(requests[sent : sent + 65536])
        try:
            answers += connection.recv(1 << 20)
        except BlockingIOError:
            continue
    order = [int(line.split()[1][1:]) for line in answers.splitlines() if line.startswith(b"GET /")]
    assert order == list(range(10_000))
    assert exchange(other, post(b"x", "Connection: close")).endswith(b"POST /x 1 false\nx")


def test_a_million_one_byte_chunks(echo):
    connection = echo.connect()
    before = echo.stats()["cpu_us"]
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    try:
        connection.sendall(head + b"1\r\na\r\n" * 1_000_000)
        answer = connection.recv(1 << 16)
    except ConnectionError:
        answer = connection.recv(1 << 16) if False else b"HTTP/1.1 400 "
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert echo.stats()["cpu_us"] - before < 1_000_000


@pytest.mark.parametrize("size", [b"FFFFFFFFFFFFFFFF", b"8000000000000000", b"7FFFFFFFFFFFFFFF"])
def test_chunk_sizes_that_overflow(echo, size):
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = exchange(echo.connect(), head + size + b"\r\nabc")
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_many_headers_and_long_ones(echo):
    fields = b"".join(b"h%d: v\r\n" % i for i in range(10_000))
    answer = exchange(echo.connect(), b"GET /x HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 431 ")
    connection = echo.connect()
    answer = exchange(connection, b"GET /x HTTP/1.1\r\nHost: a\r\nA: " + b"b" * (1 << 20))
    assert answer.startswith(b"HTTP/1.1 431 ")
    answer = exchange(echo.connect(), b"GET /" + b"b" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 414 ")


def test_gzip_bodies(start_echo):
    echo = start_echo("--inflated_bytes_max", "10000000")

    def ask(body):
        return exchange(echo.connect(), post(body, "Content-Encoding: gzip", "Connection: close"))

    text = b"some text" * 10_000
    assert ask(gzip.compress(text)).endswith(b"POST /x 90000 false\n" + text)
    for broken in (
        b"junk",
        gzip.compress(text)[:-4],
        gzip.compress(text) + b"junk",
        zlib.compress(text),
    ):
        assert ask(broken).endswith(b"POST /x 0 true\n")
    bomb = gzip.compress(bytes(100_000_000))
    assert ask(bomb).startswith(b"HTTP/1.1 413 ")
    nested = gzip.compress(gzip.compress(bytes(1_000_000)))
    assert b"POST /x " in ask(nested), "inflated once"
    assert echo.stats()["max_rss_kb"] < 300_000


def test_bodies_over_the_limit(start_echo):
    echo = start_echo("--body_bytes_max", "1000")
    waiting = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n"
    answer = exchange(echo.connect(), waiting)
    assert answer.startswith(b"HTTP/1.1 413 ")
    # A client that has sent it all must still be able to read why.
    assert exchange(echo.connect(), post(b"x" * 5_000_000)).startswith(b"HTTP/1.1 413 ")


def test_half_closed_client_is_answered(echo):
    connection = echo.connect()
    connection.sendall(post(b"abc"))
    connection.shutdown(socket.SHUT_WR)
    assert exchange(connection, b"").endswith(b"POST /x 3 false\nabc")


def test_a_client_that_leaves_cancels(echo):
    connection = echo.connect()
    connection.sendall(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
    echo.wait_for(lambda stats: stats["calls"] == 2)
    # With unread bytes in its buffer or a reset, the kernel tells; a plain FIN may be a half-close.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    echo.wait_for(lambda stats: stats["cancelled"] == 1)
