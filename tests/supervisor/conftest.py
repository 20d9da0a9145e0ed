# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Starts the supervisor around a fake front and a fake zygote, which obey orders of a test."""

import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

# Machines under load are slow; a passing test never waits this long.
PATIENCE_S = 60.0

KINDS = {"zygote_started": 16, "ended": 17, "stopped": 18, "drain": 19, "reload": 20}


def pytest_addoption(parser):
    parser.addoption("--fakes", required=True, help="the directory of the programs with fakes")


def free_port():
    """A TCP port that nothing listened on a moment ago: servers take no port 0, which means off."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what):
    """Polls, since most of what is waited for happens in other processes."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {PATIENCE_S} s: {what}")


def alive(pid):
    """Whether the process runs; a zombie does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Server:
    """One running supervisor."""

    def __init__(self, program, arguments=(), environment=None, log=None):
        self.port = free_port()
        command = [program] if program.endswith("tensorflow_model_server") else [program, "serve"]
        command += [f"--port={self.port}", "--model_base_path=/m", *arguments]
        self.log_path = log
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def order(self, text):
        """Sends an order to the front and gives its answer. Raises OSError while there is none."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as client:
            client.sendall(text.encode())
            answer = b""
            while part := client.recv(65536):
                answer += part
        return answer.decode()

    def front(self):
        """The pid of a front that answers, or None."""
        try:
            return int(self.order("pid") or 0) or None
        except OSError:
            return None

    def wait_for_front(self, other_than=None):
        """The pid of a front that answers."""

        def found():
            return self.front() not in (None, other_than) and self.front()

        return wait_until(found, "a front answers")

    def events(self):
        """What the supervisor told this front: dicts of kind, pid, status and runtime."""
        lines = self.order("events").splitlines()
        return [{k: int(v) for k, v in (p.split("=") for p in line.split())} for line in lines]

    def wait_for_event(self, kind, **fields):
        """The first event of this kind with these fields."""

        def found():
            for event in self.events():
                if event["kind"] == KINDS[kind] and fields.items() <= event.items():
                    return event
            return None

        return wait_until(found, f"{kind} {fields}; got {self.events()}")

    def start_zygote(self, runtime=1):
        self.order(f"zygote {runtime}")
        return self.wait_for_event("zygote_started", runtime=runtime)["pid"]

    def start_worker(self, runtime=1):
        return int(self.order(f"fork {runtime}"))

    def send(self, number):
        self.process.send_signal(number)

    def exit_code(self):
        return self.process.wait(PATIENCE_S)

    def log(self):
        return pathlib.Path(self.log_path).read_text()


@pytest.fixture
def fakes(request):
    return pathlib.Path(request.config.getoption("--fakes"))


@pytest.fixture
def start(fakes, tmp_path):
    """Starts servers that are gone after the test."""
    servers = []

    def starter(arguments=(), environment=None, program="tensord"):
        log = tmp_path / f"log{len(servers)}"
        servers.append(Server(str(fakes / program), arguments, environment, log))
        return servers[-1]

    yield starter
    for server in servers:
        if server.process.poll() is None:
            server.send(signal.SIGKILL)
            server.process.wait()
        server.process.stdout.close()


@pytest.fixture
def server(start):
    """One server whose front answers."""
    started = start()
    started.wait_for_front()
    return started
