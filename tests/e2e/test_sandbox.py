# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What a model's own code can do and see, asked from inside by the probe op."""

import os
import re
from pathlib import Path

import grpc
import pytest
from clients import error_of
from local_server import MIB
from test_worker_death import probe, settings_for

# What TensorFlow and the libraries below it read.
KEPT = {
    f"{prefix}_TENSORD_TEST": "may be seen"
    for prefix in ("TF", "CUDA", "NVIDIA", "OMP", "KMP", "MALLOC")
} | {"XLA_FLAGS": " ", "LD_LIBRARY_PATH": "/nowhere/to/be/found"}
DENIED = {"Permission denied", "Operation not permitted", "No such file or directory"}


@pytest.fixture(scope="module")
def server(module_servers, models, tmp_path_factory):
    before = dict(os.environ)
    os.environ.update(KEPT, TENSORD_TEST_SECRET="must not be seen")
    server = module_servers.start(
        models={name: models / name for name in ("probe", "files", "half")},
        settings=settings_for(models, "probe"),
    )
    os.environ.clear()
    os.environ.update(before)
    return server


def test_its_descriptors_are_its_channel_its_segments_and_its_log(client):
    lines = probe(client, "fds").splitlines()
    if lines and lines[0].startswith("!"):
        pytest.fail(f"the probe cannot list its descriptors: {lines}")
    targets = [line.split(" ", 1)[1] for line in lines if " " in line]
    sockets = [t for t in targets if t.startswith("socket:")]
    assert len(sockets) == 1, targets
    for target in targets:
        assert re.match(
            r"socket:|pipe:|/memfd:|/dev/null|/proc/|anon_inode:|No such|Perm", target
        ), targets


@pytest.mark.parametrize("family", ["inet", "unix"])
def test_it_can_make_no_socket(client, family):
    assert probe(client, "socket", family) in DENIED


def test_it_can_start_no_program(client):
    assert probe(client, "fork") in DENIED
    assert probe(client, "exec", "/bin/true") in DENIED


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/hostname", "/root", "/tmp", "/"])
def test_it_can_open_no_file_of_the_system(client, path):
    assert probe(client, "read", path) in DENIED


def test_it_can_open_no_other_model_and_no_file_of_ours(client, server, models):
    for path in (
        models / "half/1/saved_model.pb",
        server.config_path,
        server.log_path,
        Path(__file__),
    ):
        assert probe(client, "read", path) in DENIED, path


def test_it_can_write_nothing(client, server, models):
    for folder in ("/tmp", "/dev/shm", "/var/tmp", models / "probe/1", server.folder):
        path = Path(folder) / "written_by_a_model"
        assert probe(client, "write", path) in DENIED
        assert not path.exists()


def test_it_cannot_signal_the_server(client, server):
    for process in (server.pid, server.front().pid, server.zygotes()[0].pid):
        assert probe(client, "signal", process) in DENIED, process


def test_it_runs_as_a_user_of_its_own_when_the_server_is_root(client):
    if os.getuid() != 0:
        pytest.skip("the server was not started as root")
    uid, gid = map(int, probe(client, "ids").split())
    assert uid != 0
    assert gid != 0


def test_it_sees_only_the_environment_it_needs(client):
    lines = probe(client, "environ").splitlines()
    assert not [line for line in lines if "TENSORD_TEST_SECRET" in line]
    assert {f"{name}={value}" for name, value in KEPT.items()} <= set(lines)
    names = {line.split("=", 1)[0] for line in lines}
    for name in names:
        assert re.match(
            r"TF_|CUDA_|NVIDIA_|XLA_FLAGS|OMP_|KMP_|MALLOC_|LD_LIBRARY_PATH|TENSORD_", name
        )


def test_a_graph_that_reads_files_is_refused_by_the_kernel(client):
    error = error_of(lambda: client.predict("files", {"path": b"/etc/passwd"}))
    assert error.code() != grpc.StatusCode.OK
    assert "root:" not in error.details()


def test_a_graph_that_writes_files_is_refused_by_the_kernel(client, tmp_path):
    target = tmp_path / "written"
    tmp_path.chmod(0o777)
    inputs = {"path": str(target).encode(), "text": b"x"}
    error_of(lambda: client.predict("files", inputs, signature="write"))
    assert not target.exists()


def test_workers_are_small_beside_their_model(server, client):
    """A fork of the zygote adds little; half has no weights to speak of."""
    rows = {p.pid: private_bytes(p.pid) / MIB for p in server.workers()}
    print("private MiB of each worker:", rows)
    assert min(rows.values()) < 40


def private_bytes(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * sum(int(n) for n in re.findall(r"Private_\w+: +(\d+) kB", text))


def test_what_the_kernel_says_of_a_worker(server):
    for process in server.workers():
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
        assert re.search(r"^Seccomp:\t2$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
