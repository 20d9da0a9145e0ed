# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""`tensord train` as a keeper of processes: plain scripts, so that nothing waits for TensorFlow."""

import ast
import contextlib
import http.server
import inspect
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
import types
import typing
from pathlib import Path

import pytest
import tensord_train
from local_server import BIN, ROOT, Process, eventually, free_port
from train_runs import TrainRuns, processes_of

SLEEPER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
# As TensorFlow does once its server runs.
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, lambda *a: None)\n" + SLEEPER


@pytest.fixture
def runs(tmp_path):
    runs = TrainRuns(tmp_path)
    yield runs
    runs.finish()


def test_each_rank_gets_its_place_and_its_lines_get_its_name(runs):
    script = runs.script(
        """
        import json, os, sys
        config = json.loads(os.environ["TF_CONFIG"])
        print("task", config["task"], len(config["cluster"]["worker"]))
        print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], sys.argv[1:])
        print("to stderr", file=sys.stderr)
        """
    )
    run = runs.two(script, program=["--epochs", "a b"])
    assert run.code() == 0, run.output()
    for rank in (0, 1):
        for text in (
            f"[worker/{rank}] task {{'type': 'worker', 'index': {rank}}} 2",
            f"[worker/{rank}] rank {rank} of 2 ['--epochs', 'a b']",
            f"[worker/{rank}] to stderr",
        ):
            assert text in run.output()
        assert f"rank {rank} of 2" in run.log(f"worker/{rank}")


def test_the_ports_are_kept_for_the_ranks_and_for_nobody_else(runs):
    script = runs.script(
        """
        import json, os, socket
        config = json.loads(os.environ["TF_CONFIG"])
        host, port = config["cluster"]["worker"][config["task"]["index"]].split(":")
        try:
            socket.socket().bind(("0.0.0.0", int(port)))
            print("taken by anybody")
        except OSError:
            print("refused to others")
        mine = socket.socket()
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("0.0.0.0", int(port)))
        mine.listen()
        print("served")
        """
    )
    run = runs.two(script)
    assert run.code() == 0, run.output()
    assert run.output().count("refused to others") == 2
    assert run.output().count("served") == 2


def test_the_first_failure_ends_all_and_is_explained(runs):
    script = runs.script(
        """
        import os, pathlib, signal, time
        signal.signal(signal.SIGTERM, lambda *a: None)
        stubborn = pathlib.Path("stubborn")
        if os.environ["RANK"] == "1":
            while not stubborn.exists():
                time.sleep(0.05)
            raise ValueError("no such column: price")
        stubborn.touch()
        time.sleep(600)
        """
    )
    begin = time.monotonic()
    run = runs.two(script, "--grace", "1")
    assert run.code() == 1
    assert time.monotonic() - begin < 30, "one second of grace"
    assert "first failure: worker/1, exit 1" in run.output()
    assert "ValueError: no such column: price" in run.output().split("first failure")[1]
    assert "worker/0: signal 9 (SIGKILL) (was stopped)" in run.output()


def test_a_death_by_a_signal_is_128_and_its_number(runs):
    run = runs.two(runs.script(SLEEPER), "--grace", "1")
    eventually(lambda: run.output().count("up") == 2, "both ranks run", 30)
    os.kill(run.pid_of("worker/0"), signal.SIGKILL)
    assert run.code() == 137
    assert "first failure: worker/0, signal 9 (SIGKILL)" in run.output()


def test_all_ranks_start_again_after_a_failure_and_42_does_not_count(runs):
    script = runs.script(
        """
        import os, sys
        count = int(os.environ["RESTART_COUNT"])
        print("start", count, flush=True)
        if os.environ["RANK"] == "1" and count < 2:
            sys.exit(5 if count == 0 else 42)
        """
    )
    run = runs.two(script, "--max-restarts", "1")
    assert run.code() == 0, run.output()
    assert run.output().count("] start 2") == 2
    assert "(1 of 1 counted)" in run.output()
    assert "(not counted)" in run.output()
    assert "start 1" in run.log("worker/0", generation=2)


def test_a_script_error_is_final_when_only_signals_restart(runs):
    script = runs.script("raise SystemExit(7)\n")
    run = runs.two(script, "--max-restarts", "3", "--restart-on", "signals")
    assert run.code() == 7
    assert "not restarted" in run.output()


def test_a_stopped_rank_is_named_and_the_group_starts_again(runs):
    script = runs.script(
        """
        import os, time
        print("up", flush=True)
        if os.environ["RESTART_COUNT"] == "0":
            time.sleep(600)
        """
    )
    run = runs.two(script, "--stopped-timeout", "2", "--grace", "1", "--max-restarts", "1")
    eventually(lambda: run.output().count("up") == 2, "both ranks run", 30)
    os.kill(run.pid_of("worker/1"), signal.SIGSTOP)
    assert run.code() == 0, run.output()
    assert "worker/1 is stopped (SIGSTOP)" in run.output()
    assert "time.sleep" not in run.output()  # The stack is a file and a line …
    assert 'script.py", line 5' in run.output(), "… of the rank that still runs"


def test_a_hang_is_said_within_its_limit_with_all_stacks(runs):
    run = runs.two(runs.script(SLEEPER), "--start-timeout", "3", "--grace", "1")
    begin = time.monotonic()
    assert run.code() == 1
    assert time.monotonic() - begin < 40
    assert "has not made its first step" in run.output()
    for rank in (0, 1):
        assert (
            f'[worker/{rank}]   File "{runs.folder}/script.py", line 3 in <module>' in run.output()
        )


def test_a_silent_rank_is_found_beside_independent_ones_that_move(runs):
    script = runs.script(
        """
        import os, time
        while os.environ["RANK"] == "0":
            print("at work", flush=True)
            time.sleep(0.2)
        time.sleep(600)
        """
    )
    local = ["--mode", "local", "--start-timeout", "10", "--grace", "1"]
    run = runs.two(script, *local)
    assert run.code(120) == 1, run.output()
    assert "worker/1 has not made its first step, and did not move" in run.output()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_gives_the_ranks_their_grace_and_leaves_nothing(runs, number, code):
    run = runs.two(runs.script(STUBBORN), "--grace", "1")
    eventually(lambda: run.output().count("up") == 2, "both ranks run", 30)
    run.signal(number)
    assert run.code() == code


@pytest.mark.parametrize("who", ["guard", "launcher", "rank"])
def test_whoever_is_killed_nothing_is_left(runs, who):
    """A helper that left its group and lost its parent is the hardest to find."""
    script = runs.script(
        """
        import subprocess, sys, time
        code = "import os, time\\nos.setsid()\\nif os.fork(): os._exit(0)\\ntime.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code])
        print("up", flush=True)
        time.sleep(600)
        """
    )
    run = runs.two(script, "--grace", "1")
    eventually(lambda: run.output().count("up") == 2, "both ranks run", 30)
    eventually(lambda: len(processes_of(run.run_id)) >= 4, "the helpers run", 30)
    pid = {"guard": run.process.pid, "launcher": None, "rank": None}[who]
    pid = pid or (run.launcher_pid() if who == "launcher" else run.pid_of("worker/0"))
    os.kill(pid, signal.SIGKILL)
    assert run.code() in {-signal.SIGKILL, 137}


def test_output_that_nobody_reads_stops_nothing(runs):
    script = runs.script("for i in range(20000): print('line', i, 'x' * 300)\n")
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [
            BIN / "tensord",
            "train",
            "--standalone",
            "--no-inject",
            "--log-dir",
            runs.folder / "l",
            "--",
            sys.executable,
            script,
        ],
        stdout=writer,
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    assert process.wait(60) == 0
    os.close(reader)
    assert (runs.folder / "l/1/worker_0.log").read_text().count("\n") == 20000


def seen_on_screen(text):
    """What a terminal shows in the end, as far as `tensord train` moves its cursor."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\d*[A-Z]|[\r\n]|[^\r\n\x1b]+", text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part[-1] == "A" and part[0] == "\x1b":
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        else:
            end = column + len(part)
            lines[row] = lines[row][:column] + part + lines[row][end:]
            column = end
    return lines


def test_progress_on_a_terminal_is_one_line_a_rank_that_goes_when_it_is_over(runs):
    script = runs.script(
        """
        import pathlib, time
        stop = pathlib.Path("stop")
        i = 0
        while not stop.exists() and i < 1200:
            i += 1
            print(f"\\rstep {i}", end="", flush=True)
            time.sleep(0.05)
        print("\\rall done", flush=True)
        """
    )
    terminal, other_end = pty.openpty()
    termios.tcsetwinsize(other_end, (50, 300))
    process = subprocess.Popen(
        [
            BIN / "tensord", "train", "--standalone", "--nproc-per-node", "2", "--no-pin",
            "--log-dir", runs.folder / "logs", "--", sys.executable, script,
        ],
        stdin=subprocess.DEVNULL, stdout=other_end, stderr=other_end, cwd=runs.folder,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(other_end)
    text, bars = "", []
    with contextlib.suppress(OSError):  # The last one closed the other end.
        while read := os.read(terminal, 65536):
            text += read.decode()
            if "\x1b[1A\x1b[J" in text and not (runs.folder / "stop").exists():
                bars = [line for line in seen_on_screen(text) if "] step" in line]
                if len(bars) >= 2:  # Else a redraw came in two parts.
                    (runs.folder / "stop").touch()
    os.close(terminal)
    assert process.wait(60) == 0, text
    assert [line[:15] for line in bars] == ["[worker/0] step", "[worker/1] step"]
    lines = seen_on_screen(text)
    assert not [line for line in lines if "] step" in line], "no state of a bar is left"
    assert {"[worker/0] all done", "[worker/1] all done"} < set(lines)
    assert any(line.endswith("2 ranks on 1 machine") for line in lines), "our own lines are whole"
    assert "\x1b" not in (runs.folder / "logs/1/worker_0.log").read_text()


def test_a_terminal_that_stops_writers_in_the_background_does_not_stop_it(runs):
    terminal, other_end = pty.openpty()
    settings = termios.tcgetattr(other_end)
    settings[3] |= termios.TOSTOP
    termios.tcsetattr(other_end, termios.TCSANOW, settings)
    process = subprocess.Popen(
        [
            "setsid", "--ctty", "--wait", BIN / "tensord", "train", "--standalone", "--no-inject",
            "--log-dir", "logs", "--", "true",
        ],
        stdin=other_end, stdout=other_end, stderr=other_end, cwd=runs.folder,
    )  # fmt: skip
    os.close(other_end)
    text = ""
    with contextlib.suppress(OSError):
        while read := os.read(terminal, 65536):
            text += read.decode()
    os.close(terminal)
    assert process.wait(60) == 0, text
    assert "worker/0 ended: exit 0" in text


def test_a_full_disk_for_logs_is_said_and_training_goes_on(runs):
    """A file system of 64 KiB, in a mount namespace of its own."""
    full = runs.folder / "full"
    full.mkdir()
    script = runs.script("for i in range(3000): print('line', i, 'x' * 60)\n")
    inner = f'mount -t tmpfs -o size=64k none {full} && exec "$@"'
    run = runs.start(
        "--standalone", "--log-dir", full, script=script,
        under=["unshare", "-m", "sh", "-c", inner, "sh"],
    )  # fmt: skip
    assert run.code() == 0, run.output()
    assert "cannot be written: No space left on device; the output goes on here" in run.output()
    assert "line 2999" in run.output()


def test_isolated_ranks_see_loopback_alone(runs):
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    script = runs.script("import socket; print('sees', [n for _, n in socket.if_nameindex()])\n")
    run = runs.start("--standalone", "--isolate", script=script)
    assert run.code() == 0, run.output()
    assert "sees ['lo']" in run.output()


def test_ranks_that_serve_everybody_say_so_once(runs):
    """TensorFlow's servers bind all interfaces; --isolate is named as the remedy."""
    script = runs.script("print('up')\n")
    for arguments, warned in (
        (["--nproc-per-node", "2"], 1),
        (["--nproc-per-node", "1"], 0),
        (["--nproc-per-node", "2", "--mode", "local"], 0),
    ):
        run = runs.start("--standalone", *arguments, script=script)
        assert run.code() == 0, run.output()
        assert run.output().count("listen on all interfaces") == warned, arguments
        assert run.output().count("--isolate") == warned


def test_ranks_are_in_a_control_group_where_that_is_allowed(runs):
    script = runs.script(
        """
        import pathlib
        groups = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
        print("group", *[line for line in groups if line.startswith("0::")])
        """
    )
    run = runs.start("--standalone", script=script)
    assert run.code() == 0, run.output()
    (line,) = [x for x in run.output().splitlines() if "] group" in x]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    folders = [x.split()[4] for x in mounts if " - cgroup2 " in x]
    own = [x[3:] for x in Path("/proc/self/cgroup").read_text().splitlines() if x[:3] == "0::"]
    if not folders or not own or not os.access(f"{folders[0]}{own[0]}", os.W_OK):
        assert "tensord-train-" not in line
        pytest.skip("no control group can be made here")
    assert f"tensord-train-{run.run_id}-" in line


def test_top_shows_the_ranks_from_the_status_file(runs):
    """The help counts steps of TensorFlow; here a script that plays it."""
    script = runs.script(
        """
        import os, time
        import tensord_help
        for _ in range(600):
            tensord_help.PROGRESS.steps += 1
            tensord_help.PROGRESS.wait_seconds += 0.05
            time.sleep(0.1)
        """
    )
    run = runs.two(script, "--grace", "1")
    status = run.logs / "status.json"
    eventually(lambda: status.exists() and '"step": 0' not in status.read_text(), "steps", 30)

    def ranks():
        command = [BIN / "tensord", "top", "--once", "--json", "--interval=0.2"]
        command.append(f"--training_status={status}")
        return json.loads(subprocess.check_output(command, timeout=30))["ranks"]

    def seen():
        return [r for r in ranks() if r["steps_per_second"] > 1 and 0.3 < r["input_wait"] < 0.7]

    eventually(lambda: len(seen()) == 2, "both ranks with their rates", 20)
    assert [rank["name"] for rank in ranks()] == ["worker/0", "worker/1"]
    run.signal(signal.SIGTERM)
    assert run.code() == 143


def test_input_wait_tells_the_loop_from_its_input():
    def batches(seconds):
        for i in range(12):
            time.sleep(seconds)
            yield i

    slow, fast = tensord_train.InputWait(batches(0.02)), tensord_train.InputWait(batches(0))
    assert list(slow) == list(range(12))
    for _ in fast:
        time.sleep(0.02)
    assert slow.steps == 11, "the first one traces and fills buffers"
    assert slow.share() > 0.7
    assert fast.share() < 0.3


def test_the_module_is_typed_and_says_so():
    """Type checkers ignore annotations of a module without the marker."""
    assert (Path(tensord_train.__file__).parent / "py.typed").exists()
    functions = []
    for name in tensord_train.__all__:
        public = getattr(tensord_train, name)
        members = vars(public).items() if isinstance(public, type) else [(name, public)]
        for member, value in members:
            function = value.fget if isinstance(value, property) else value
            if inspect.isfunction(function) and (member == "__init__" or member[0] != "_"):
                functions.append(function)
    assert len(functions) > 10
    for function in functions:
        hints = typing.get_type_hints(function)
        wanted = set(inspect.signature(function).parameters) - {"self"}
        assert wanted <= set(hints), function.__qualname__
        assert "return" in hints or function.__name__ == "__init__", function.__qualname__


def test_gradients_that_are_none_are_refused_with_what_to_do():
    """Before TensorFlow is asked, which would say nothing or something else."""
    scale = object.__new__(tensord_train.LossScale)
    for gradients, words in (([], "an empty list"), ([None, None], "2 that are all None")):
        for function in (tensord_train.all_reduce, scale.down):
            with pytest.raises(ValueError, match=f"{words}: are there trainable variables"):
                function(gradients)
    with pytest.raises(TypeError, match="takes a list of gradients"):
        tensord_train.all_reduce(types.SimpleNamespace(dtype="float32"))


def test_steps_are_told_to_the_launchers_pipe_and_to_nothing_else(tmp_path):
    """The variable came along and the descriptor did not: its number is a file of somebody's."""
    victim = tmp_path / "file"
    inject = ROOT / "python" / "tensord_train" / "inject"
    with victim.open("wb") as file:
        reader, writer = os.pipe()
        for number, told in ((file.fileno(), False), (2, False), (reader, False), (writer, True)):
            result = subprocess.run(
                [sys.executable, "-c", "print('ran')"], pass_fds=[number],
                capture_output=True, text=True, check=True, timeout=60,
                env={
                    **os.environ, "PYTHONPATH": str(inject), "TENSORD_TRAIN_TASK": "worker/0",
                    "TENSORD_TRAIN_BEAT_FD": str(number),
                },
            )  # fmt: skip
            assert result.stdout == "ran\n"
            assert ("is not the launcher's pipe" in result.stderr) != told, result.stderr
        assert os.read(reader, 100) == b"step=0 wait=0\n"
        os.close(reader)
        os.close(writer)
    assert victim.read_bytes() == b""


class Page(http.server.BaseHTTPRequestHandler):
    """A server's metrics, of which only the queue matters here."""

    queue = 0
    answers = threading.Event()

    def do_GET(self):
        Page.answers.wait()
        text = f'tensord_queue_calls{{model_name="half",version="1"}} {Page.queue}\n'
        self.send_response(200 if self.path == "/monitoring/prometheus/metrics" else 404)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def metrics_page():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Page.queue = 0
    Page.answers.set()
    yield f"127.0.0.1:{server.server_port}"
    Page.answers.set()
    server.shutdown()


def test_ranks_make_room_while_a_server_is_behind(runs, metrics_page):
    run = runs.two(runs.script(SLEEPER), "--yield-to", metrics_page, "--grace", "20")
    eventually(lambda: run.output().count("up") == 2, "both ranks run", 30)
    pid = run.pid_of("worker/1")

    def stopped_share():
        states = []
        for _ in range(60):
            states.append(Process.read(pid).state == "T")
            time.sleep(0.02)
        return sum(states) / len(states)

    assert stopped_share() == 0
    Page.queue = 50
    run.wait_for("50 calls wait")
    assert stopped_share() > 0.5
    Page.queue = 0
    run.wait_for("has caught up")
    assert stopped_share() == 0
    Page.queue = 50
    eventually(lambda: Process.read(pid).state == "T", "it is stopped again", 10)
    run.signal(signal.SIGTERM)
    assert run.code(15) == 143, "the ranks hear it, before their grace is over"


def test_a_server_that_takes_calls_and_never_answers_holds_no_rank_up(runs, metrics_page):
    run = runs.two(runs.script(SLEEPER), "--yield-to", metrics_page, "--grace", "20")
    Page.queue = 50
    run.wait_for("50 calls wait")
    Page.answers.clear()
    run.wait_for("no answer; training goes on as if nobody needed the machine", 120)
    run.wait_for("has caught up")
    Page.answers.set()
    run.wait_for("it answers")
    eventually(lambda: run.output().count("50 calls wait") == 2, "ranks make room again", 30)
    assert run.output().count("no answer") == 1
    run.signal(signal.SIGTERM)
    assert run.code(30) == 143


def test_a_full_disk_for_checkpoints_is_the_scripts_failure_with_advice(runs):
    full = runs.folder / "full"
    full.mkdir()
    script = runs.script(f"open('{full}/checkpoint', 'wb').write(bytes(100_000))\n")
    inner = f'mount -t tmpfs -o size=64k none {full} && exec "$@"'
    run = runs.start(
        "--standalone", script=script, under=["unshare", "-m", "sh", "-c", inner, "sh"]
    )
    assert run.code() == 1
    assert "OSError: [Errno 28] No space left on device" in run.output()
    assert "advice: a disk is full" in run.output()


def test_print_env_shows_all_and_hides_secrets(runs):
    result = subprocess.run(
        [
            BIN / "tensord",
            "train",
            "--standalone",
            "--nproc-per-node",
            "2",
            "--print-env",
            "--",
            "python3",
            "x.py",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": "/mine",
            "DB_PASSWORD": "open-sesame",
            "my_proxy": "http://me:open-sesame@proxy:3128",
        },
    )
    assert "[worker/1] RANK=1" in result.stdout
    for rank in (0, 1):
        assert f"[worker/{rank}] DB_PASSWORD=***\n" in result.stdout
        assert f"[worker/{rank}] my_proxy=http://***@proxy:3128\n" in result.stdout
    assert "open-sesame" not in result.stdout + result.stderr
    line = next(x for x in result.stdout.splitlines() if x.startswith("[worker/1] TF_CONFIG="))
    assert json.loads(line.split("=", 1)[1])["task"] == {"type": "worker", "index": 1}


def test_a_cluster_that_somebody_else_described_does_not_reach_a_rank(runs):
    """One rank has no cluster; with a foreign one TensorFlow would wait for its members."""
    script = runs.script("import os; print('config', os.environ.get('TF_CONFIG'))")
    run = runs.start("--standalone", script=script, environment={"TF_CONFIG": '{"cluster": '})
    assert run.code() == 0, run.output()
    assert "config None" in run.output()
    assert "TF_CONFIG is set here" in run.output()


def test_ranks_share_the_cpus_out_unless_told_not_to(runs):
    script = runs.script(
        """
        import os, pathlib
        pathlib.Path(f"cpus_{os.environ['RANK']}").write_text(repr(os.sched_getaffinity(0)))
        """
    )

    def cpus(*arguments):
        run = runs.two(script, *arguments)
        assert run.code() == 0, run.output()
        found = [ast.literal_eval((runs.folder / f"cpus_{i}").read_text()) for i in (0, 1)]
        return *found, run.output()

    everything = os.sched_getaffinity(0)
    first, second, output = cpus()
    if "not pinned" in output:
        assert first == second == everything
    else:
        assert first.isdisjoint(second)
        assert min(len(first), len(second)) > 0
        assert first | second == everything
    first, second, _ = cpus("--no-pin")
    assert first == second == everything


def test_wrong_usage_is_2_and_says_what_to_give():
    for arguments, words in (
        (["--standalone"], "nothing to run"),
        (["--nnodes", "2", "--", "x"], "--rdzv"),
        (["--mode", "horovod", "--", "x"], "mwms, mirrored, ps"),
        (["--mode", "ps", "--nproc-per-node", "2", "--no-inject", "--", "x"], "at least 3"),
        (["--nproc-per-node", "none", "--", "x"], '"gpu" or 1'),
        (["--nproc-per-node", "0", "--", "x"], '"gpu" or 1 to 256, not "0"'),
        (["--standalone", "python", "x.py"], 'put the program behind "--"'),
        (["--standalone", "--nnodes", "2", "--", "x"], "leave --nnodes and --rdzv out"),
        (["--nnodes", "2", "--rdzv", "fd00::1", "--", "x"], "[fd00::1]:29400"),
        (["--hosts", "", "--", "x"], "it is empty"),
        (["--grace", "nan", "--", "x"], "a number of seconds"),
        (["--nproc_per_node=0", "--", "x"], '"gpu" or 1 to 256, not "0"'),
        (
            ["--nnodes", "2", "--node_rank", "0", "--rdzv_endpoint", "::1", "--", "x"],
            '"::1" is no address',
        ),
    ):
        result = subprocess.run(
            [BIN / "tensord", "train", *arguments], capture_output=True, text=True, check=False
        )
        assert result.returncode == 2, result.stderr
        assert words in result.stderr


def test_a_program_that_is_not_there_is_127(runs):
    run = runs.start("--standalone", "--no-inject", program=["/no/such/program"])
    assert run.code() == 127
    assert "cannot start /no/such/program" in run.output()


def test_a_cut_or_missing_shard_is_named_and_not_published(runs, models):
    # Stands for an export: what is there is as if it was just written.
    script = runs.script("import os; os.utime('export/saved_model.pb'); print('trained')\n")
    export, target = runs.folder / "export", runs.folder / "model"
    shard = "variables/variables.data-00000-of-00001"

    def publish():
        run = runs.start("--standalone", "--export-dir", export, "--publish", target, script=script)
        return run.code(), run.output()

    shutil.copytree(models / "counter/1", export)
    code, output = publish()
    assert code == 0, output
    data = (export / shard).read_bytes()
    assert (target / "1" / shard).read_bytes() == data
    (export / shard).write_bytes(data[:-1])
    code, output = publish()
    assert code == 1, output
    assert f"{shard} has {len(data) - 1} of the {len(data)} bytes" in output
    (export / shard).unlink()
    code, output = publish()
    assert code == 1, output
    assert f"there is no {shard}" in output
    assert [entry.name for entry in target.iterdir()] == ["1"]


def test_an_export_of_an_earlier_run_is_not_published_again(runs, models):
    script = runs.script("print('trained, and exported nothing')\n")
    shutil.copytree(models / "counter/1", runs.folder / "export")
    places = ("--export-dir", runs.folder / "export", "--publish", runs.folder / "model")
    run = runs.start("--standalone", *places, script=script)
    assert run.code() == 1, run.output()
    assert "is as it was before this run: the script exported nothing there" in run.output()
    assert not (runs.folder / "model").exists()


def test_logs_go_to_no_folder_that_another_has_prepared(tmp_path):
    """Under the name that the run would choose in the temporary folder."""
    (tmp_path / "tensord-train-known").symlink_to(tmp_path)
    command = [BIN / "tensord", "train", "--run-id"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for run_id, code, words in (
        ("known", 1, "not only this user's"),
        ("../x", 2, "part of file names"),
    ):
        result = subprocess.run(
            [*command, run_id, "--standalone", "--", "true"],
            capture_output=True, text=True, check=False, env=environment, timeout=60,
        )  # fmt: skip
        assert result.returncode == code, result.stderr
        assert words in result.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["tensord-train-known"]


def commands_of(page):
    """The `tensord train` lines of a page's code blocks, as words."""
    text = (ROOT / page).read_text().replace("\\\n", " ")
    lines = [line for block in text.split("```")[1::2] for line in block.splitlines()]
    return [shlex.split(x) for x in lines if "tensord train" in x]


def test_every_command_of_the_pages_runs(runs):
    """A python of the test stands for the scripts; hosts of the pages are this one."""
    stub = runs.folder / "python"
    export = runs.folder / "export"
    stub.write_text(f'#!/bin/sh\ntouch {export}/saved_model.pb\necho "ran $*"\n')
    stub.chmod(0o755)
    export.mkdir()
    (export / "saved_model.pb").write_bytes(b"\x08\x01")  # A schema's version, and no graph.
    (runs.folder / "token").write_text("secret\n")
    commands = commands_of("README.md") + commands_of("docs/training.md")
    assert len(commands) >= 7
    for command in commands:
        meeting = f"127.0.0.1:{free_port()}"
        places = {
            "node0:29400": meeting, "/tmp/export": str(export), "/models/price": "m",
            "/tmp/models/price": "m2", "/shared/saved": "saved", "/tmp/saved": "saved",
        }  # fmt: skip
        words = [places.get(word, word) for word in command[command.index("train") + 1 :]]
        own, program = words[: words.index("--")], words[words.index("--") + 1 :]
        if "--hosts" in own:
            continue  # test_train_ssh.py
        nodes = 2 if "--rdzv" in own else 1
        all_runs = [
            runs.start(
                *own, *(["--node-rank", i] if nodes > 1 else []), program=program,
                environment={"PATH": f"{runs.folder}:{os.environ['PATH']}"},
            )
            for i in range(nodes)
        ]  # fmt: skip
        for run in all_runs:
            assert run.code() == 0, (words, run.output())
            assert "--check" in own or "ran " in run.output()
