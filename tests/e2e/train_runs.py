# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of `tensord train` for the tests, and a check that nothing of them is left."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

from local_server import BIN, eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "python" / "examples"
# An import of TensorFlow and Keras takes seven seconds of CPU, fit in two ranks twenty each: on a
# machine that gives a test a tenth of a CPU, these are minutes. There, an iterator that is dropped
# may wait for a thread of its own that looks only once a minute whether to end.
TENSORFLOW_SECONDS = 900


def results(folder, ranks):
    """What ranks wrote with --result result_{rank}."""
    return [json.loads((folder / f"result_{i}").read_text()) for i in range(ranks)]


def processes_of(run_id):
    """Pids of what runs with this RUN_ID in its environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"RUN_ID={run_id}".encode() in environment:
                found.append(int(entry.name))
    return found


def groups_of(run_id):
    """Control groups that its launcher made."""
    root = Path("/sys/fs/cgroup")
    return list(root.glob(f"**/tensord-train-{run_id}-*"))


class TrainRun:
    """One `tensord train`; its output goes to a file that tests read while it runs."""

    def __init__(self, folder, *arguments, program, under=(), environment=None):
        self.run_id = f"t{uuid.uuid4().hex[:10]}"
        self.logs = folder / f"logs_{self.run_id}"
        self.path = folder / f"{self.run_id}.out"
        command = [*under, BIN / "tensord", "train", "--run-id", self.run_id]
        if "--log-dir" not in arguments:
            command += ["--log-dir", self.logs]
        command += [*arguments, "--", *program]
        with self.path.open("wb") as out:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                cwd=folder,
                start_new_session=True,
            )

    def output(self):
        return self.path.read_text(errors="replace")

    def wait_for(self, text, seconds=60):
        def seen():
            ended = self.process.poll() is not None
            assert text in self.output() or not ended, f"{text!r} never came:\n{self.output()}"
            return text in self.output()

        eventually(seen, f"{text!r} in the output", seconds)
        return self.output()

    def code(self, seconds=60):
        """Its exit code; and nothing of it is left then."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not end within {seconds} s:\n{self.output()}") from None
        eventually(lambda: not processes_of(self.run_id), "no process is left", 20)
        eventually(lambda: not groups_of(self.run_id), "no control group is left", 20)
        return code

    def launcher_pid(self):
        """Of the launcher that the guard, which we started, watches."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    def pid_of(self, task):
        for pid in processes_of(self.run_id):
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if f"TENSORD_TRAIN_TASK={task}".encode() in environment:
                return pid
        raise AssertionError(f"{task} does not run:\n{self.output()}")

    def signal(self, number):
        os.kill(self.process.pid, number)

    def log(self, task, generation=1):
        return (self.logs / str(generation) / f"{task.replace('/', '_')}.log").read_text()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in processes_of(self.run_id):
            os.kill(pid, signal.SIGKILL)


class TrainRuns:
    """Makes runs, and ends those that a failed test left."""

    def __init__(self, folder):
        self.folder = folder
        self.all = []

    def script(self, text, name="script.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def start(self, *arguments, script=None, program=(), **more):
        program = [sys.executable, script, *program] if script else list(program)
        self.all.append(TrainRun(self.folder, *arguments, program=program, **more))
        return self.all[-1]

    def two(self, script, *arguments, **more):
        """Two ranks on this machine."""
        return self.start(
            "--standalone", "--nproc-per-node", "2", *arguments, script=script, **more
        )

    def finish(self):
        for run in self.all:
            run.kill()
