# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Servers, models and stock clients for the end-to-end tests. Real binaries, real TensorFlow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("VIRTUAL_ENV", sys.prefix)

from clients import GrpcClient, RestClient  # noqa: E402
from local_server import BIN, LocalServer, eventually  # noqa: E402

MODELS = Path(os.environ.get("TENSORD_TEST_MODELS", ROOT / "build/test_models"))


def pytest_collection_modifyitems(items):
    """Says once, and clearly, why nothing can pass."""
    if items and not (BIN / "tensord").exists():
        pytest.exit(f"{BIN}/tensord is missing: ./run build makes it", returncode=2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    setattr(item, f"report_{outcome.get_result().when}", outcome.get_result())


@pytest.fixture(scope="session")
def models():
    """The folder of test models, made if need be."""
    script = ROOT / "tests/models/make_models.py"
    subprocess.run([sys.executable, str(script), "--out", str(MODELS)], check=True)
    return MODELS


class Servers:
    """Starts servers and sees to it that none outlives its test, nor any part of one."""

    def __init__(self, folder):
        self.folder = folder
        self.all = []

    def create(self, **arguments):
        server = LocalServer(self.folder / f"server{len(self.all)}", **arguments)
        self.all.append(server)
        return server

    def start(self, ready=True, **arguments):
        server = self.create(**arguments).start()
        return server.wait_ready() if ready else server

    def finish(self):
        """Stops all; the processes that were left behind, as text."""
        left = []
        for server in self.all:
            if server.process is None:
                continue
            code = server.stop()
            if code is None:
                left.append(f"{server.folder.name} did not end within its time")
                continue
            try:
                eventually(lambda s=server: not s.left_over(), "no process is left", 10)
            except TimeoutError:
                left += [f"{server.folder.name} left {p}" for p in server.left_over()]
                server.kill()
        return left

    def logs(self):
        return "".join(f"\n---- {s.folder.name}: {s.log_path}\n{s.log()[-8000:]}" for s in self.all)


def finish_and_check(servers, failed):
    left = servers.finish()
    if failed or left:
        print(servers.logs())
    assert not left, left


@pytest.fixture
def servers(tmp_path, request):
    servers = Servers(tmp_path)
    yield servers
    report = getattr(request.node, "report_call", None)
    finish_and_check(servers, failed=report is None or report.failed)


@pytest.fixture(scope="module")
def module_servers(tmp_path_factory, request):
    """For tests that only ask: one server serves a whole file."""
    servers = Servers(tmp_path_factory.mktemp(request.module.__name__))
    failed_before = request.session.testsfailed
    yield servers
    finish_and_check(servers, failed=request.session.testsfailed > failed_before)


@pytest.fixture(scope="module")
def client(server):
    """A stock client of the file's one server; a file that wants another kind makes its own."""
    client = GrpcClient(server.grpc)
    yield client
    client.close()


@pytest.fixture(scope="module")
def rest(server):
    client = RestClient(server.rest)
    yield client
    client.close()


@pytest.fixture
def grpc_client():
    """grpc_client(server): a stock client, closed at the end."""
    opened = []

    def connect(server, **arguments):
        opened.append(GrpcClient(server.grpc, **arguments))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


@pytest.fixture(scope="module")
def http(server):
    """Triton's client."""
    from tritonclient.http import InferenceServerClient

    client = InferenceServerClient(f"127.0.0.1:{server.rest_port}", concurrency=2)
    yield client
    client.close()


@pytest.fixture(scope="module")
def over_grpc(server):
    """Triton's other client."""
    from tritonclient.grpc import InferenceServerClient

    client = InferenceServerClient(server.grpc)
    yield client
    client.close()


@pytest.fixture
def rest_client():
    opened = []

    def connect(server):
        opened.append(RestClient(server.rest))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()
