# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""A server of this tree on free ports of this machine, for the demo and the end-to-end tests.

Everything it starts is found through /proc and ended by its number; nothing is killed by name.
"""

import contextlib
import fcntl
import functools
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("TENSORD_BIN", ROOT / "build/release/bin"))
MIB = 1 << 20


PORT_BLOCK = 64


@functools.cache
def port_block():
    """Ports for this process alone, below those that connections get; and what locks them."""
    folder = Path(tempfile.gettempdir()) / f"tensord_ports_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    blocks = range(10240, 32000, PORT_BLOCK)
    for first in random.sample(blocks, len(blocks)):
        lock = open(folder / str(first), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return itertools.cycle(range(first, first + PORT_BLOCK)), lock
    raise OSError(f"all blocks of ports are in use, says {folder}")


def free_port():
    """A port that nobody has now, and that no other process of these tests will take."""
    ports, _lock = port_block()
    for port in itertools.islice(ports, PORT_BLOCK):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("all ports of this process's block are in use")


def eventually(check, what, seconds=120.0):
    """Waits until check() gives something true, and returns it. Says what it waited for if not."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.02)


@dataclass(frozen=True)
class Process:
    """One process as /proc shows it. The start time keeps a reused number from looking the same."""

    pid: int
    session: int
    started: int
    state: str = field(compare=False)
    parent: int = field(compare=False)

    @staticmethod
    def read(pid):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = text[text.rindex(")") + 2 :].split()
        return Process(pid, int(fields[3]), int(fields[19]), fields[0], int(fields[1]))

    @property
    def alive(self):
        now = Process.read(self.pid)
        return now is not None and now.started == self.started and now.state not in "ZX"

    @property
    def program(self):
        try:
            return Path(os.readlink(f"/proc/{self.pid}/exe")).name.removesuffix(" (deleted)")
        except OSError:
            return ""

    def pss(self):
        """Bytes of memory, what is shared split among the sharers."""
        return self._memory("Pss:")

    def own_memory(self):
        """The same without files, whose parts change with what others have mapped."""
        return self._memory("Pss_Anon:", "Pss_Shmem:")

    def _memory(self, *names):
        try:
            lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        except (OSError, ProcessLookupError):
            return 0
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))

    def start_peak(self):
        """Begins to note the most resident memory anew (needs root)."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak(self):
        """The most resident memory since then, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def maps(self):
        with contextlib.suppress(OSError, ProcessLookupError):
            return Path(f"/proc/{self.pid}/maps").read_text()
        return ""


def all_processes():
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [p for p in map(Process.read, pids) if p is not None]


def model_config(models):
    """The text of a --model_config_file. `models`: name to base path, or to (path, more lines)."""
    lines = []
    for name, path in models.items():
        base, more = path if isinstance(path, tuple) else (path, "")
        lines.append(
            f'  config {{ name: "{name}" base_path: "{base}" model_platform: "tensorflow" {more} }}'
        )
    return "model_config_list {\n" + "\n".join(lines) + "\n}\n"


class LocalServer:
    """`tensord serve`, or the alias, with its whole tree of processes.

    models: name to base path (see model_config); flags: further options by name, None leaves a
    default of ours out; settings: the text of a --model_settings_file; launcher: the words of a
    command that becomes the server.
    """

    def __init__(self, folder, models=None, settings=None, alias=False, launcher=(), **flags):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_path = self.folder / "server.log"
        self.config_path = self.folder / "models.config"
        self.grpc_port = free_port()
        self.rest_port = free_port()
        self.alias = alias
        self.launcher = launcher
        options = {"port": self.grpc_port, "rest_api_port": self.rest_port}
        if models is not None:
            self.config_path.write_text(model_config(models))
            options["model_config_file"] = self.config_path
        if settings is not None:
            (self.folder / "settings.config").write_text(settings)
            options["model_settings_file"] = self.folder / "settings.config"
        options.update(flags)
        self.options = {name: value for name, value in options.items() if value is not None}
        self.process = None
        self._seen = {}

    def command(self):
        program = [BIN / "tensorflow_model_server"] if self.alias else [BIN / "tensord", "serve"]
        options = [f"--{k}={v}" for k, v in self.options.items()]
        return [str(p) for p in (*self.launcher, *program)] + options

    def start(self):
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The server finds the TensorFlow libraries in the environment that runs this.
                env={"VIRTUAL_ENV": sys.prefix, **os.environ},
                start_new_session=True,
            )
        self.tree()
        return self

    @property
    def pid(self):
        return self.process.pid

    @property
    def rest(self):
        return f"http://127.0.0.1:{self.rest_port}"

    @property
    def grpc(self):
        return f"127.0.0.1:{self.grpc_port}"

    def log(self):
        time.sleep(0.05)  # Lines are written by a thread of their own, a moment later.
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def status_code(self, path):
        """Of a GET; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(self.rest + path, timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, ConnectionError):
            return 0

    def wait_ready(self, seconds=120.0):
        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(
                    f"the server ended with {self.process.returncode}:\n{self.log()}"
                )
            return self.status_code("/readyz") == 200

        eventually(ready, f"/readyz of {self.rest} says 200", seconds)
        self.tree()
        return self

    # ---- Its processes ----

    def tree(self):
        """All living processes that the server started, itself first."""
        everyone = all_processes()
        family = {self.pid}
        for _ in range(len(everyone)):
            more = {p.pid for p in everyone if p.parent in family or p.session == self.pid}
            if more <= family:
                break
            family |= more
        living = [p for p in everyone if p.pid in family and p.state not in "ZX"]
        for process in living:
            self._seen[process.pid, process.started] = process
        return sorted(living, key=lambda p: (p.pid != self.pid, p.started))

    def front(self):
        """The process that talks to clients, or None."""
        found = [p for p in self.tree() if p.pid != self.pid and p.program == "tensord"]
        return found[0] if found else None

    def kill_front(self):
        """Kills it, and waits for the next one."""
        front = self.front()
        os.kill(front.pid, signal.SIGKILL)
        eventually(lambda: not front.alive, "the front is gone")
        eventually(lambda: self.front() not in (None, front), "there is another")

    def zygotes(self):
        return [p for p in self._of_worker_program() if "memfd:" not in p.maps()]

    def workers(self):
        """A worker maps the segments of its channel; a zygote maps none."""
        return [p for p in self._of_worker_program() if "memfd:" in p.maps()]

    def _of_worker_program(self):
        return [p for p in self.tree() if p.program == "tensord-worker"]

    def pss(self):
        """Memory of the whole server, in bytes."""
        return sum(p.pss() for p in self.tree())

    def own_memory(self):
        """The same without files, which other servers share."""
        return sum(p.own_memory() for p in self.tree())

    def left_over(self):
        """What was ever seen of the tree and still lives."""
        return [p for p in self._seen.values() if p.alive]

    # ---- Its end ----

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=60.0):
        return self.process.wait(timeout=seconds)

    def stop(self, seconds=60.0):
        """SIGTERM, and the exit code. Kills what does not go; see left_over() before."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.tree()
            self.signal(signal.SIGTERM)
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self):
        """The end of every process of the tree, by its number."""
        if self.process is None:
            return
        self.tree()
        for process in self.left_over():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)
