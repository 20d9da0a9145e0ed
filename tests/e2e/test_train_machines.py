# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train` on several machines: agents that meet over TCP, here in network namespaces."""

import json
import signal
import subprocess
import uuid

import pytest
from local_server import free_port
from test_tls import Authority
from train_runs import EXAMPLES, TENSORFLOW_SECONDS, TrainRuns

SHORT = """
    import json, os
    print("workers", json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"], flush=True)
"""
WAITING_ONCE = """
    import os, time
    print("up", os.environ["RESTART_COUNT"], flush=True)
    while os.environ["RESTART_COUNT"] == "0":
        time.sleep(1)
"""


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def start_pair(runs, script, *arguments, second=None, **more):
    """Two agents of this machine, as if they were two; the first leads."""
    meeting = f"127.0.0.1:{free_port()}"
    return [
        runs.start(
            "--nnodes", "2", "--rdzv", meeting, "--node-rank", str(i), *arguments,
            script=script if i == 0 else second or script, **more,
        )
        for i in (0, 1)
    ]  # fmt: skip


def test_agents_meet_start_together_and_end_together(runs):
    first, other = start_pair(runs, runs.script(SHORT))
    assert first.code() == 0, first.output()
    assert other.code() == 0, other.output()
    line = next(x for x in first.output().splitlines() if "workers" in x)
    assert line.removeprefix("[worker/0] ") in other.output()
    assert "[worker/1]" in other.output()


def test_a_wrong_token_is_sent_away(runs):
    (runs.folder / "token").write_text("right\n")
    meeting = f"127.0.0.1:{free_port()}"
    script = runs.script(SHORT)
    common = ["--nnodes", "2", "--rdzv", meeting]
    first = runs.start(
        *common, "--node-rank", "0", "--token-file", "token", "--join-timeout", "5", script=script
    )
    first.wait_for("waiting for the other machines")
    other = runs.start(
        *common, "--node-rank", "1", script=script, environment={"TENSORD_TRAIN_TOKEN": "wrong"}
    )
    assert other.code() == 1
    assert "another token" in other.output()
    assert first.code() == 1
    assert "1 of 2 machines did not come within 5 s" in first.output()


def test_a_leader_that_has_no_address_yet_is_waited_for_and_named(runs):
    run = runs.start(
        "--nnodes", "2", "--rdzv", "job-0.service.invalid:29400", "--node-rank", "1",
        "--join-timeout", "2", script=runs.script(SHORT),
    )  # fmt: skip
    assert run.code() == 1
    assert "trying on" in run.output()
    assert "no leader at job-0.service.invalid:29400 within 2 s" in run.output()


def test_another_script_is_found_before_the_start(runs):
    script = runs.script(SHORT)
    second = runs.script(SHORT + "\n", name="other.py")
    first, other = start_pair(runs, script, second=second)
    assert first.code() == 1
    assert "the script's hash differs" in first.output()
    assert other.code() == 1
    assert "workers" not in first.output() + other.output()


def test_another_tensorflow_is_found_before_the_start(runs):
    """As its package says; nothing of it is imported for that."""
    package = runs.folder / "other" / "tensorflow-2.20.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.20.0\n")
    meeting = f"127.0.0.1:{free_port()}"
    first, other = (
        runs.start(
            "--nnodes", "2", "--rdzv", meeting, "--node-rank", str(i),
            script=runs.script(SHORT), environment={"PYTHONPATH": path},
        )
        for i, path in ((0, ""), (1, str(package.parent)))
    )  # fmt: skip
    assert first.code() == 1
    assert "has 2.20.0: install the same version" in first.output()
    assert other.code() == 1


def test_agents_meet_by_tls_and_take_nobody_without_it(runs):
    ours, others = Authority(runs.folder / "ours"), Authority(runs.folder / "others")
    meeting = f"127.0.0.1:{free_port()}"
    script = runs.script(SHORT)

    def start(index, authority, patience):
        pair = authority.sign(runs.folder / f"of{index}_{len(runs.all)}", "agent")
        return runs.start(
            "--nnodes", "2", "--rdzv", meeting, "--node-rank", index, "--join-timeout", patience,
            "--tls-cert", pair.certificate, "--tls-key", pair.key,
            "--tls-ca", authority.certificate, script=script,
        )  # fmt: skip

    first = start(0, ours, 20)
    first.wait_for("waiting for the other machines")
    stranger = start(1, others, 1)
    assert stranger.code() == 1
    assert "TLS: " in stranger.output()
    clear = runs.start(
        "--nnodes", "2", "--rdzv", meeting, "--node-rank", "1", "--join-timeout", "1", script=script
    )
    assert clear.code() == 1
    friend = start(1, ours, 20)
    assert first.code() == 0, first.output()
    assert friend.code() == 0, friend.output()
    assert "[worker/1] workers" in friend.output()


def test_check_meets_and_starts_nothing(runs):
    shared = runs.folder / "checkpoints"
    first, other = start_pair(runs, runs.script(SHORT), "--check", "--checkpoint-dir", str(shared))
    assert first.code() == 0, first.output()
    assert other.code() == 0, other.output()
    assert "2 machines with 2 ranks are ready" in first.output()
    assert "workers" not in first.output()
    assert not list(shared.iterdir()), "the marks are taken away"


@pytest.fixture
def networks():
    """Two network namespaces with a cable between them: 10.77.0.1 and 10.77.0.2."""
    names = [f"td{uuid.uuid4().hex[:6]}" for _ in range(2)]

    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip("network namespaces need root and iproute2")
    ip("link", "add", names[0], "type", "veth", "peer", "name", names[1])
    for i, name in enumerate(names):
        ip("link", "set", name, "netns", name)
        ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", name)
        ip("-n", name, "link", "set", name, "up")
        ip("-n", name, "link", "set", "lo", "up")
    yield names
    for name in names:
        ip("netns", "delete", name)


def start_apart(runs, networks, index, script, *arguments, **more):
    return runs.start(
        "--nnodes", "2", "--rdzv", "10.77.0.1:29400", "--grace", "2", *arguments,
        script=script, under=["ip", "netns", "exec", networks[index]], **more,
    )  # fmt: skip


def test_the_job_survives_the_loss_of_a_machine_that_comes_back(runs, networks):
    script = runs.script(WAITING_ONCE)
    first = start_apart(runs, networks, 0, script, "--max-restarts", "1")
    other = start_apart(runs, networks, 1, script)
    first.wait_for("up 0")
    other.wait_for("up 0")
    other.signal(signal.SIGKILL)
    first.wait_for("is lost")
    assert other.code() == -signal.SIGKILL
    again = start_apart(runs, networks, 1, script)
    assert first.code() == 0, first.output()
    assert again.code() == 0, again.output()
    assert "[worker/1] up 1" in again.output()


def test_tensorflow_trains_over_two_machines_and_resumes_when_one_was_lost(runs, networks):
    folder, program = runs.folder, ["--steps", "24", "--checkpoints", "saved"]
    text = (EXAMPLES / "custom_loop.py").read_text()
    slow = "        __import__('time').sleep(0.1)\n        losses.append"
    script = runs.script(text.replace("        losses.append", slow))
    program += ["--result", "result_{rank}"]
    shared = ["--checkpoint-dir", folder / "saved"]
    first = start_apart(runs, networks, 0, script, "--max-restarts", "1", *shared, program=program)
    other = start_apart(runs, networks, 1, script, *shared, program=program)
    first.wait_for("[worker/0] step 11 ", TENSORFLOW_SECONDS)
    other.signal(signal.SIGKILL)
    first.wait_for("is lost")
    other.code()
    again = start_apart(runs, networks, 1, script, *shared, program=program)
    assert first.code(TENSORFLOW_SECONDS) == 0, first.output()
    assert again.code(TENSORFLOW_SECONDS) == 0, again.output()
    both = first.output() + again.output()
    (step,) = {x.split("resumed at step ")[1] for x in both.splitlines() if "resumed at" in x}
    assert int(step) >= 10
    results = [json.loads((folder / f"result_{i}").read_text()) for i in (0, 1)]
    assert results[0]["weights"] == results[1]["weights"]
    assert results[0]["restarts"] == "1"


def test_a_lost_leader_ends_the_ranks_of_the_others(runs, networks):
    script = runs.script(WAITING_ONCE)
    first = start_apart(runs, networks, 0, script)
    other = start_apart(runs, networks, 1, script, "--join-timeout", "3")
    other.wait_for("up 0")
    first.signal(signal.SIGKILL)
    assert other.code() == 1
    assert "the leader is gone" in other.output()


def test_under_slurm_nothing_has_to_be_said(runs, networks):
    script = runs.script(SHORT)
    both = []
    for i, network in enumerate(networks):
        slurm = {"SLURM_STEP_NODELIST": "10.77.0.[1-2]", "SLURM_NODEID": str(i)}
        under = ["ip", "netns", "exec", network]
        environment = {**slurm, "SLURM_STEP_ID": "0"}
        both.append(runs.start(script=script, under=under, environment=environment))
    for i, run in enumerate(both):
        assert run.code() == 0, run.output()
        assert f"[worker/{i}] workers ['10.77.0.1:" in run.output()


def test_pods_of_an_indexed_job_wait_for_the_leaders_name(runs, networks):
    """Each has the hosts file that Kubernetes gives a pod; the name that DNS adds comes late."""
    script = runs.script(SHORT)
    hosts = [runs.folder / f"hosts{i}" for i in (0, 1)]

    def start(i):
        hosts[i].write_text(f"10.77.0.{i + 1} price-{i}.job.ns.svc price-{i}\n")
        pod = f'hostname price-{i} && mount --bind {hosts[i]} /etc/hosts && exec "$@"'
        under = ["ip", "netns", "exec", networks[i], "unshare", "--uts", "--mount", "sh", "-c", pod]
        index = {"JOB_COMPLETION_INDEX": str(i)}
        return runs.start(
            "--nnodes", "2", script=script, under=[*under, "sh"], environment=index
        )  # fmt: skip

    other = start(1)
    other.wait_for("price-0.job.ns.svc:29400")
    first = start(0)
    first.wait_for("waiting for the other machines")
    with hosts[1].open("a") as file:
        file.write("10.77.0.1 price-0.job.ns.svc\n")
    assert first.code() == 0, first.output()
    assert other.code() == 0, other.output()
    assert "[worker/1] workers ['price-0.job.ns.svc:" in other.output()


def test_a_blocked_way_is_named_before_the_start(runs, networks):
    """The leader gives an address that nothing answers at."""
    script = runs.script(SHORT)
    first = start_apart(runs, networks, 0, script, "--address", "10.77.0.9")
    other = start_apart(runs, networks, 1, script)
    assert first.code() == 1, first.output()
    assert "nobody reaches 10.77.0.9:" in first.output()
    assert other.code() == 1
