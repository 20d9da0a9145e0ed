# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What a model's own code can do and see, asked from inside by the probe op."""

import os
import re
import sys
from pathlib import Path

import grpc
import numpy as np
import pytest
from clients import RestClient, error_of
from local_server import MIB, eventually
from test_metrics import MONITORING, scrape
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
    monitoring = tmp_path_factory.mktemp("monitoring") / "monitoring.config"
    monitoring.write_text(MONITORING)
    server = module_servers.start(
        models={name: models / name for name in ("probe", "files", "half", "counter")},
        settings=settings_for(models, "probe", more="sandbox_stage: 1"),
        monitoring_config_file=monitoring,
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


def test_workers_are_small_beside_their_model(servers, models):
    """A fork of the zygote adds little; none of these has weights to speak of."""
    server = servers.start(models={name: models / name for name in ("half", "counter", "files")})
    rows = {p.pid: private_bytes(p.pid) / MIB for p in server.workers()}
    print("private MiB of each worker:", rows)
    assert len(rows) == 3
    assert max(rows.values()) < 20


def private_bytes(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * sum(int(n) for n in re.findall(r"Private_\w+: +(\d+) kB", text))


# ---- What is told of it --------------------------------------------------------------------------

# The best that this machine's kernel and user allow is found out elsewhere; here it is shown.
GRADES = {"A": 4, "B": 3, "C": 2, "D": 1}


def details_of(server):
    listed = RestClient(server.rest).get("/v1/models").json()["models"]
    return {m["name"]: m["details"][0] for m in listed if m["details"]}


def test_status_metrics_and_log_tell_grade_and_stage(server):
    details = details_of(server)
    page = scrape(RestClient(server.rest))
    for name, stage in {"half": 2, "files": 2, "probe": 1}.items():
        seen = details[name]
        assert seen["sandbox_stage"] == stage, seen
        assert seen["sandbox_grade"] in "AB", seen
        assert page.value("tensord_sandbox_stage", model_name=name) == stage
        grade = page.value("tensord_sandbox_grade", model_name=name)
        assert grade == GRADES[seen["sandbox_grade"]]
        assert re.search(
            rf"model {name}, version \d+: its sandbox has grade {seen['sandbox_grade']} "
            rf"and is at stage {stage}",
            server.log(),
        )
    assert "stage 1: its settings ask for no more" in details["probe"]["sandbox"]
    [probed] = [line for line in details["half"]["sandbox"] if line.startswith("probe: ")]
    refused, tried = re.match(r"probe: (\d+) of (\d+) forbidden acts refused", probed).groups()
    assert refused == tried
    assert int(tried) >= 60


def test_a_model_with_state_stays_at_stage_1_and_says_why(server):
    seen = details_of(server)["counter"]
    assert seen["sandbox_stage"] == 1
    assert any("it keeps state, so nothing has warmed it up" in line for line in seen["sandbox"])


# ---- Once it is warm -----------------------------------------------------------------------------


@pytest.fixture
def sealed(servers, models):
    return servers.start(
        models={name: models / name for name in ("probe", "half", "jitted")},
        settings=settings_for(models, "probe"),
    )


def test_a_warm_model_that_tries_something_else_dies_of_it_and_is_named(sealed, grpc_client):
    client = grpc_client(sealed)
    assert details_of(sealed)["probe"]["sandbox_stage"] == 2
    assert probe(client, "read", "/etc/passwd") == "Permission denied"
    assert probe(client, "write", "/tmp/written_by_a_model") == "Permission denied"
    assert probe(client, "thread") == "done"
    error = error_of(lambda: probe(client, "socket", "inet"))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert "the model called socket (system call" in error.details()
    assert "which its sandbox forbids" in error.details()
    eventually(lambda: "the model called socket" in sealed.log(), "the log says so", 10)
    x = np.array([2.0], np.float32)
    assert client.predict("half", {"x": x})["y"][0] == 3.0

    def serves():
        try:
            return probe(client, "hello", timeout=5) == "hello"
        except grpc.RpcError:
            return False

    eventually(serves, "it is started again")


def test_xla_compiles_for_sizes_that_came_after_the_warm_up(sealed, grpc_client):
    client = grpc_client(sealed)
    assert details_of(sealed)["jitted"]["sandbox_stage"] == 2
    for rows in (1, 3, 5, 17):
        y = client.predict("jitted", {"x": np.full([rows, 64], 0.5, np.float32)})["y"]
        assert y.shape == (rows, 10)


# ---- Containers and older kernels ----------------------------------------------------------------


def in_container(*refused):
    script = Path(__file__).with_name("in_container.py")
    return (sys.executable, str(script), *refused, "--")


@pytest.mark.parametrize("stage", [1, 2])
def test_under_a_containers_filter_a_model_is_refused_each_time(
    servers, models, grpc_client, stage
):
    server = servers.start(
        models={"probe": models / "probe", "half": models / "half"},
        settings=settings_for(models, "probe", more=f"sandbox_stage: {stage}"),
        launcher=in_container(),
    )
    client = grpc_client(server)
    seen = details_of(server)["probe"]
    assert (seen["sandbox_grade"], seen["sandbox_stage"]) == ("B", stage)
    assert probe(client, "read", models / "half/1/saved_model.pb") in DENIED
    assert probe(client, "read", "/etc/passwd") in DENIED
    assert probe(client, "write", models / "probe/1/new") in DENIED
    assert probe(client, "memory") in DENIED
    acts = [("socket", "inet"), ("fork", ""), ("signal", server.pid)]
    for what, argument in acts if stage == 1 else acts[:1]:
        if stage == 1:
            assert probe(client, what, argument) in DENIED
        else:
            error = error_of(lambda w=what, a=argument: probe(client, w, a))
            assert "which its sandbox forbids" in error.details()
    assert client.predict("half", {"x": np.array([2.0], np.float32)})["y"][0] == 3.0


def test_without_landlock_nothing_loads_unless_the_operator_accepts_it(servers, models):
    launcher = in_container("landlock_create_ruleset")
    half = {"half": models / "half"}
    server = servers.start(models=half, launcher=launcher, ready=False)
    words = "files outside the model's directory can be read, which --accept_weak_sandbox=files"
    eventually(lambda: words in server.log(), "the load fails and says why")
    assert server.status_code("/readyz") != 200
    for flags in ({"accept_weak_sandbox": "files"}, {"sandbox": "best-effort"}):
        server = servers.start(models=half, launcher=launcher, **flags)
        seen = details_of(server)["half"]
        assert (seen["sandbox_grade"], seen["sandbox_stage"]) == ("C", 2)


def test_off_is_told(servers, models):
    server = servers.start(models={"half": models / "half"}, sandbox="off")
    seen = details_of(server)["half"]
    assert (seen["sandbox_grade"], seen["sandbox_stage"]) == ("D", 0)


def test_what_the_kernel_says_of_a_worker(server):
    for process in server.workers():
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
        assert re.search(r"^Seccomp:\t2$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
