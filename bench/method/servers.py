# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The servers that are measured: each starts, has a process tree and ports, and ends."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from method.places import BIN, MODELS, PYTHON_PEERS, ROOT, SCRATCH, runtime_directory

from local_server import LocalServer, free_port  # isort: skip

START_SECONDS = 180
QUIET_TENSORFLOW = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def tensord(name, models, **flags):
    """A started tensord with bench models by name, or with name to base path; has ports and pid."""
    folder = SCRATCH / name.replace(" ", "_")
    bases = models if isinstance(models, dict) else {m: str(MODELS / m) for m in models}
    (folder / "server.log").unlink(missing_ok=True)
    server = LocalServer(folder, models=bases, **flags).start()
    try:
        return server.wait_ready(START_SECONDS)
    except BaseException:
        server.kill()
        raise


class Started:
    """A server in a process of its own, ended by its number."""

    def __init__(self, name, command, environment=None, reads_stdout=True):
        SCRATCH.mkdir(parents=True, exist_ok=True)
        self.log_path = SCRATCH / f"{name.replace(' ', '_')}.log"
        self.log = self.log_path.open("w")
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            # A pipe that nobody reads would stop a server that writes a line a request.
            stdout=subprocess.PIPE if reads_stdout else self.log,
            stderr=self.log,
            text=True,
            env=os.environ | QUIET_TENSORFLOW | (environment or {}),
            start_new_session=True,  # Its own group: stop() reaches what it started.
        )
        self.pid = self.process.pid

    def fail(self, words):
        self.stop()
        tail = "\n".join(self.log_path.read_text().splitlines()[-5:])
        raise RuntimeError(f"{words}; its log {self.log_path} ends with:\n{tail}")

    def signal_group(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def stop(self):
        self.signal_group(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=20)
        self.signal_group(signal.SIGKILL)  # LitServe leaves its workers behind.
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.log.close()


class Peer(Started):
    """One of ours, of the usual shapes; its one port is gRPC's or REST's by kind."""

    def __init__(self, name, kind, models, *, threads=2, batch_rows=0, batch_us=0):
        command = [BIN / "peer_server", kind, runtime_directory(), 0, threads, batch_rows, batch_us]
        command += [f"{model}={MODELS / model / '1'}" for model in models]
        super().__init__(name, command)
        line = self.process.stdout.readline().split()
        if len(line) != 2 or line[0] != "listening":
            self.fail(f"the peer {name} did not start")
        self.grpc_port = self.rest_port = int(line[1])


class PythonPeer(Started):
    """BentoML or LitServe with its default settings and no access log, one model."""

    PATH = "/predict"

    def __init__(self, kind, model):
        self.rest_port = free_port()
        here = ROOT / "bench/peers/python"
        if kind == "bentoml":
            command = [PYTHON_PEERS / "bin/bentoml", "serve", "bentoml_service:Peer"]
            command += ["--working-dir", here, "--host", "127.0.0.1", "--port", self.rest_port]
        else:
            command = [PYTHON_PEERS / "bin/python", here / "litserve_server.py", self.rest_port]
        environment = {
            "BENCH_MODEL": str(MODELS / model / "1"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "BENTOML_DO_NOT_TRACK": "True",
            "BENTOML_CONFIG_OPTIONS": "api_server.logging.access.enabled=false",
            "BENTOML_HOME": str(SCRATCH / "bentoml_home"),
        }
        super().__init__(kind, command, environment, reads_stdout=False)
        self.wait_until_it_answers()

    def wait_until_it_answers(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self.fail("it ended")
            with contextlib.suppress(OSError):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{self.rest_port}/docs", timeout=2)
                except urllib.error.HTTPError as error:
                    error.close()
                return
            time.sleep(0.5)
        self.fail(f"no answer within {START_SECONDS} s")


def install_python_peers():
    """Makes their environment; the words of what went wrong, empty when it is there."""
    wanted = (ROOT / "bench/peers/python/requirements.txt").read_text()
    stamp = PYTHON_PEERS / ".requirements"
    if stamp.exists() and stamp.read_text() == wanted:
        return ""
    print("installing BentoML, LitServe and TensorFlow for them ...", file=sys.stderr, flush=True)
    pip = [PYTHON_PEERS / "bin/pip", "install", "--disable-pip-version-check", "-q", "-r"]
    steps = [
        [sys.executable, "-m", "venv", PYTHON_PEERS],
        [*pip, ROOT / "bench/peers/python/requirements.txt"],
    ]
    for step in steps:
        done = subprocess.run([str(s) for s in step], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip failed"
    stamp.write_text(wanted)
    return ""
