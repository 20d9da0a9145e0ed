# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Running out of descriptors and places, and going away."""

import signal
import socket
import threading
import time

import h2


def ask(echo, timeout=20):
    connection = echo.connect(timeout)
    connection.sendall(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = b""
    while some := connection.recv(4096):
        answer += some
    connection.close()
    return answer


def test_out_of_descriptors_and_back(start_echo):
    echo = start_echo("--open_files", "64", plain=True)
    crowd = []
    for _ in range(200):
        connection = socket.socket()
        connection.settimeout(20)
        connection.connect(("127.0.0.1", echo.port))
        crowd.append(connection)
    # Idle ones make room: a newcomer is served in the middle of it.
    assert ask(echo).startswith(b"HTTP/1.1 200")
    for connection in crowd:
        connection.close()
    assert ask(echo).startswith(b"HTTP/1.1 200")
    stats = echo.wait_for(lambda stats: stats["connections"] == 1)
    assert stats["evicted"] > 0


def test_out_of_descriptors_with_busy_ones(start_echo):
    echo = start_echo("--open_files", "64", plain=True)
    busy = []
    for _ in range(200):
        connection = socket.socket()
        connection.settimeout(20)
        connection.connect(("127.0.0.1", echo.port))
        connection.sendall(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        busy.append(connection)
        # In turn, so that each is busy before the next one comes.
        if len(busy) < 80:
            time.sleep(0.002)
    turned_away = 0
    for connection in busy:
        connection.settimeout(0.01)
        try:
            turned_away += connection.recv(1) == b""
        except TimeoutError:
            pass
        except ConnectionError:
            turned_away += 1
    assert turned_away >= 100, "those without a place learn it at once"
    for connection in busy:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
    assert ask(echo).startswith(b"HTTP/1.1 200")
    stats = echo.wait_for(lambda stats: stats["connections"] == 1)
    assert stats["turned_away"] > 0


def test_a_deaf_moment_costs_no_cpu(start_echo):
    echo = start_echo("--connections_max", "2")
    busy = [echo.connect() for _ in range(2)]
    for connection in busy:
        connection.sendall(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(0.2)
    waiting = echo.connect()
    waiting.sendall(b"GET /stats HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(1)
    busy[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    busy[0].close()
    answer = waiting.recv(65536)
    cpu_us = int(answer.split(b'"cpu_us":')[1].split(b",")[0])
    assert cpu_us < 700_000, "start-up included"
    for connection in (busy[1], waiting):
        connection.close()


def test_a_drain_under_load_loses_nothing(echo):
    """Keep-alive clients that reconnect when told to; none sees an error before the port closes."""
    failures = []
    done = []

    def client():
        connection = None
        try:
            while True:
                if connection is None:
                    try:
                        connection = echo.connect()
                    except ConnectionRefusedError:
                        done.append(1)
                        return
                connection.sendall(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
                answer = b""
                while not answer.endswith(b"POST /x 2 false\nab"):
                    some = connection.recv(65536)
                    if not some:
                        raise ConnectionError(f"closed after {answer!r}")
                    answer += some
                if b"connection: close" in answer:
                    connection.close()
                    connection = None
        except OSError as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    echo.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []
    assert len(done) == 8


def test_a_drain_says_goaway_twice(echo):
    connection = echo.connect()
    connection.sendall(
        h2.hello()
        + h2.frame(
            h2.HEADERS,
            h2.END_HEADERS,
            1,
            h2.request("/echo.Echo/Hang", (*h2.GRPC, ("grpc-timeout", "1S"))),
        )
        + h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b""))
    )
    echo.wait_for(lambda stats: stats["calls"] == 2)
    echo.process.send_signal(signal.SIGTERM)
    last_streams = []
    answered = False
    while True:
        try:
            kind, flags, _, payload = h2.read_frame(connection)
        except ConnectionError:
            break
        if kind == h2.PING and not flags & h2.ACK:
            connection.sendall(h2.frame(h2.PING, h2.ACK, 0, payload))
        if kind == h2.GOAWAY:
            last_streams.append(int.from_bytes(payload[:4], "big"))
        if kind == h2.HEADERS:
            answered = True
    assert last_streams == [0x7FFFFFFF, 1]
    assert answered
