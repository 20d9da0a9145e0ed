# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Connections without a server behind them: each test starts its own front_echo.

front_echo (src/front/testing) is built with front_test. TENSORD_FRONT_ECHO names one; otherwise the
newest one below build/ is taken.
"""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@cache
def is_sanitized(program):
    return b"__ubsan_handle" in program.read_bytes()


def find_echo(plain):
    """The front_echo to test; with `plain`, one without sanitizers, or a skipped test."""
    named = os.environ.get("TENSORD_FRONT_ECHO")
    built = sorted(ROOT.glob("build/*/src/front/front_echo"), key=lambda path: path.stat().st_mtime)
    candidates = [Path(named)] if named else built[::-1]
    if not candidates:
        pytest.exit("front_echo is missing: build the target front_test first", returncode=2)
    if not plain:
        return candidates[0]
    for program in [*candidates, *built[::-1]]:
        if not is_sanitized(program):
            return program
    # The sanitizer opens a pipe to see whether memory is readable, and takes no for an answer.
    return pytest.skip("UBSan reports errors of its own when no descriptor is left")


class Echo:
    """One running front_echo."""

    def __init__(self, *arguments, plain=False):
        self.process = subprocess.Popen(
            [find_echo(plain), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.process.stdout.readline().split()[1])

    def connect(self, timeout=20):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def stats(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats", timeout=120) as answer:
            return json.load(answer)

    def wait_for(self, condition, seconds=120):
        """The first stats that fulfil the condition."""
        end = time.monotonic() + seconds
        while True:
            stats = self.stats()
            if condition(stats):
                return stats
            assert time.monotonic() < end, f"still {stats}"
            time.sleep(0.02)

    def stop(self):
        """Drains it; what a sanitizer has to say becomes the failure."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            _, errors = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert self.process.returncode == 0, errors[-4000:]


@pytest.fixture
def start_echo():
    started = []

    def start(*arguments, plain=False):
        started.append(Echo(*arguments, plain=plain))
        return started[-1]

    yield start
    for echo in started:
        echo.stop()


@pytest.fixture
def echo(start_echo):
    return start_echo()
