# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train --hosts`: real ssh to a real sshd; the machines are this one under two names."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from local_server import eventually, free_port
from train_runs import TrainRuns, processes_of

SLEEPER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def ssh_config(tmp_path_factory):
    """A file for ssh -F that knows alpha and beta, and gamma, where nobody listens."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or os.geteuid() != 0:
        pytest.skip("openssh-server is not here, or we are not root")
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-qN", "", "-t", "ed25519", "-f", folder / name], check=True)
    port = free_port()
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\n"
    )
    config = folder / "config"
    config.write_text(
        "".join(f"Host {name}\n  Port {at}\n" for name, at in (("alpha", port), ("beta", port)))
        + f"Host gamma\n  Port {free_port()}\nHost *\n  HostName 127.0.0.1\n"
        f"  User {getpass.getuser()}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-D", "-e", "-f", folder / "sshd_config"],
            stderr=log,
            stdin=subprocess.DEVNULL,
        )

    def listens():
        assert process.poll() is None, (folder / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    eventually(listens, "sshd listens", 20)
    yield config
    process.terminate()
    process.wait()


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def start(runs, ssh_config, hosts, *arguments, **more):
    return runs.start(
        "--hosts", hosts, "--ssh-config", ssh_config, "--rdzv", f"127.0.0.1:{free_port()}",
        "--grace", "1", *arguments, **more,
    )  # fmt: skip


def test_one_command_runs_a_rank_on_every_host_with_its_arguments_as_they_are(runs, ssh_config):
    script = runs.script(
        """
        import os, sys
        print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], os.getcwd())
        print(sys.argv[1:], os.environ["TF_OF_THE_TEST"])
        """
    )
    words = ["a b", "it's $HOME; `x` \\", "", "*"]
    environment = {"TF_OF_THE_TEST": "goes along'"}
    run = start(
        runs, ssh_config, "alpha,beta", script=script, program=words, environment=environment
    )
    assert run.code() == 0, run.output()
    for rank in (0, 1):
        assert f"[worker/{rank}] rank {rank} of 2 {runs.folder}" in run.output()
        assert f"[worker/{rank}] {words} goes along'" in run.output()


def test_a_host_that_cannot_be_reached_is_named_and_nothing_starts(runs, ssh_config):
    run = start(runs, ssh_config, "alpha,gamma", script=runs.script("print('began')\n"))
    assert run.code() == 1
    assert "gamma: ssh does not get there" in run.output()
    assert "alpha:" not in run.output()
    assert "began" not in run.output()


def test_a_failing_rank_gives_its_code_and_its_traceback(runs, ssh_config):
    script = runs.script(
        """
        import os, time
        if os.environ["RANK"] == "1":
            raise SystemExit(7)
        time.sleep(600)
        """
    )
    run = start(runs, ssh_config, "alpha,beta", script=script)
    assert run.code() == 7, run.output()
    assert "first failure: worker/1, exit 7" in run.output()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_when_the_command_ends_all_hosts_end_their_ranks(runs, ssh_config, number, code):
    run = start(runs, ssh_config, "alpha,beta", script=runs.script(SLEEPER))
    eventually(lambda: run.output().count("up") == 2, "both ranks run", 30)
    assert len(processes_of(run.run_id)) >= 2
    run.signal(number)
    assert run.code() == code, run.output()
