# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The supervisor as real processes: who dies, who is started again, and what is left behind."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time

from conftest import PATIENCE_S, alive, free_port, wait_until


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def descriptors(pid):
    """Number to target of every descriptor of a process."""
    targets = {}
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            targets[int(fd.name)] = os.readlink(fd)
        except FileNotFoundError:
            continue  # Closed since.
    return targets


def inherited(pid):
    """The same without the one that its log has made for itself."""
    return {fd: to for fd, to in descriptors(pid).items() if to != "anon_inode:[eventfd]"}


def listening(front):
    """The listening sockets on the command line of a front."""
    words = pathlib.Path(f"/proc/{front}/cmdline").read_text().rstrip("\0").split("\0")
    numbers = words[-1].strip("+").partition("/")[0].replace(";", ",").split(",")
    return sorted(int(number) for number in numbers if number != "-1")


def crash(server):
    """The front dies, and there is another."""
    first = server.front()
    with contextlib.suppress(OSError):
        server.order("crash")
    return server.wait_for_front(other_than=first)


def all_gone(pids):
    return not any(alive(pid) for pid in pids)


def test_killed_front_is_started_again_on_the_same_socket(server):
    first = server.front()
    (number,) = listening(first)
    socket_before = descriptors(first)[number]
    zygote, worker = server.start_zygote(), server.start_worker()
    os.kill(first, signal.SIGKILL)
    # A client that connects between two fronts waits in the socket's queue and is not refused.
    second = int(server.order("pid"))
    assert second != first
    assert descriptors(second)[number] == socket_before
    assert all_gone([zygote, worker])
    assert server.events() == []
    assert "killed by signal 9 (Killed); starting it again" in server.log()
    server.send(signal.SIGTERM)
    assert server.exit_code() == 0


def test_front_that_crashes_in_a_loop_ends_the_server_with_1(server):
    while server.process.poll() is None:
        with contextlib.suppress(OSError):
            server.order("crash")
    assert server.exit_code() == 1
    assert "the front ended 6 times within 60 s" in server.log()


def test_killed_zygote_is_reported_and_harms_no_worker(server):
    zygote, worker = server.start_zygote(), server.start_worker()
    os.kill(zygote, signal.SIGKILL)
    event = server.wait_for_event("ended", pid=zygote)
    assert event["status"] == signal.SIGKILL
    assert event["runtime"] == 1
    assert alive(worker)
    # Another one serves under the same number.
    assert server.start_zygote(runtime=2) != zygote
    assert alive(server.start_worker(runtime=2))


def test_workers_are_children_of_the_supervisor_and_reported_when_they_die(server):
    server.start_zygote()
    worker = server.start_worker()
    assert parent(worker) == server.process.pid
    os.kill(worker, signal.SIGALRM)
    assert server.wait_for_event("ended", pid=worker)["status"] == signal.SIGALRM
    assert not pathlib.Path(f"/proc/{worker}").exists(), "a zombie was left"


def test_stopped_worker_is_reported_and_killed(server):
    server.start_zygote()
    worker = server.start_worker()
    os.kill(worker, signal.SIGSTOP)
    server.wait_for_event("stopped", pid=worker)
    server.wait_for_event("ended", pid=worker)


def test_stopped_zygote_is_killed_and_said(server):
    zygote, worker = server.start_zygote(), server.start_worker()
    os.kill(zygote, signal.SIGSTOP)
    assert server.wait_for_event("ended", pid=zygote)["runtime"] == 1
    assert "was stopped by a signal; killing it" in server.log()
    assert alive(worker)
    assert server.start_zygote(runtime=2) != zygote


def test_zygote_that_the_front_gives_up_is_killed_and_said(server):
    zygote, worker = server.start_zygote(), server.start_worker()
    server.order(f"kill_zygote {worker}")
    server.order(f"kill_zygote {zygote}")
    server.wait_for_event("ended", pid=zygote)
    assert f"(process {zygote}) does not answer" in server.log()
    assert alive(worker)


def test_stopped_front_is_killed_and_started_again(server):
    first = server.front()
    os.kill(first, signal.SIGSTOP)
    # Waits in the socket's queue until there is a front that takes it.
    second = int(server.order("pid"))
    assert second != first
    assert "is stopped and serves nothing" in server.log()
    assert "it gives no sign of life" in server.log()


def test_front_that_is_stopped_for_a_moment_stays(server):
    front = server.front()
    os.kill(front, signal.SIGSTOP)
    wait_until(lambda: "is stopped and serves nothing" in server.log(), "the stop is said")
    os.kill(front, signal.SIGCONT)
    assert server.front() == front


def test_supervisor_kills_workers_for_the_front_but_nobody_else(server):
    zygote, worker = server.start_zygote(), server.start_worker()
    front = server.front()
    for pid in (os.getpid(), zygote, front, server.process.pid, 1, 0, -1, worker):
        server.order(f"kill {pid}")
    # Orders are obeyed in turn: once the last one is, the others were refused.
    server.wait_for_event("ended", pid=worker)
    assert alive(zygote)
    assert server.front() == front


def test_orphans_of_strangers_are_reaped(server):
    # A process that a worker or a stranger left behind becomes the supervisor's child.
    zygote = server.start_zygote()
    worker = server.start_worker()
    os.kill(zygote, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    server.wait_for_event("ended", pid=worker)
    server.wait_for_event("ended", pid=zygote)
    children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    assert children.read_text().split() == [str(server.front())]


def test_sigterm_and_sigint_drain_and_exit_with_0(start):
    for number in (signal.SIGTERM, signal.SIGINT):
        server = start()
        front = server.wait_for_front()
        zygote, worker = server.start_zygote(), server.start_worker()
        server.send(number)
        assert server.exit_code() == 0
        assert all_gone([front, zygote, worker])


def test_second_signal_exits_at_once(start):
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        server = start()
        front = server.wait_for_front()
        zygote, worker = server.start_zygote(), server.start_worker()
        server.order("ignore_drain")
        server.send(signal.SIGTERM)
        server.wait_for_event("drain")
        time.sleep(0.3)  # Right after the first it would be the same one.
        server.send(number)
        assert server.exit_code() == code
        assert all_gone([front, zygote, worker])


def test_signals_to_every_process_are_one_to_the_supervisor(start):
    """As systemd, killall and, twice, timeout(1) send them."""
    for number in (signal.SIGTERM, signal.SIGINT):
        server = start()
        processes = [server.wait_for_front(), server.start_zygote(), server.start_worker()]
        for _ in range(2):
            for pid in processes:
                os.kill(pid, number)
            server.send(number)
        assert server.exit_code() == 0
        assert all_gone(processes)


def test_front_that_does_not_drain_is_killed_after_the_drain_time(start):
    server = start(["--drain_timeout_ms=1", "--drain_lame_duck_ms=1"])
    front = server.wait_for_front()
    server.order("ignore_drain")
    server.send(signal.SIGTERM)
    assert server.exit_code() == 1
    assert all_gone([front])
    assert "the front did not finish in the drain time" in server.log()


def test_killed_supervisor_leaves_nobody_behind(server):
    processes = [server.front(), server.start_zygote(), server.start_worker()]
    server.send(signal.SIGKILL)
    server.process.wait()
    wait_until(lambda: all_gone(processes), "all died with the supervisor")


def test_exit_code_of_a_front_that_cannot_start_is_passed_on(start):
    server = start(["--model_name=exit 7"])
    assert server.exit_code() == 7
    assert "starting it again" not in server.log()


def test_front_that_ends_itself_after_it_served_is_started_again(server):
    first = server.front()
    zygote, worker = server.start_zygote(), server.start_worker()
    server.order("exit 7")
    assert server.wait_for_front(other_than=first) != first
    assert all_gone([zygote, worker])
    assert "the front ended: exit code 7; starting it again" in server.log()


def test_next_front_gets_what_the_last_one_left_and_nobody_else_does(server):
    assert server.order("kept") == "nothing"
    server.order("keep first")
    server.order("keep second")
    crash(server)
    assert server.order("kept") == "second"
    zygote = server.start_zygote()
    wait_until(lambda: sorted(descriptors(zygote)) == [0, 1, 2, 3], "the zygote has none of it")
    # It stays until another takes its place.
    crash(server)
    assert server.order("kept") == "second"
    server.order("forget")
    crash(server)
    assert server.order("kept") == "nothing"


def test_front_that_leaves_what_can_still_change_is_replaced(server):
    first = server.front()
    server.order("keep_unsealed")
    assert server.wait_for_front(other_than=first) != first
    assert "expected memory that is sealed" in server.log()
    assert server.order("kept") == "nothing"


def test_front_after_a_ready_one_is_not_told_to_wait_for_its_models(start):
    server = start(program="tensorflow_model_server")
    first = server.wait_for_front()
    assert server.order("waits") == "true"
    os.kill(first, signal.SIGKILL)
    server.wait_for_front(other_than=first)
    assert server.order("waits") == "false"


def test_front_that_sends_nonsense_is_replaced(server):
    first = server.front()
    server.order("nonsense")
    assert server.wait_for_front(other_than=first) != first
    assert "it sent a record that is none" in server.log()


def test_sighup_asks_the_front_to_reload(server):
    server.send(signal.SIGHUP)
    server.wait_for_event("reload")


def test_children_of_whoever_execd_the_supervisor_are_left_alone(start, fakes, tmp_path):
    port = free_port()
    log = (tmp_path / "log").open("wb")
    shell = subprocess.Popen(
        [
            "sh",
            "-c",
            f"sleep 1000 & echo $!; exec {fakes}/tensord serve --port={port} --model_base_path=/m",
        ],
        stdout=subprocess.PIPE,
        stderr=log,
    )
    sleeper = int(shell.stdout.readline())
    try:

        def ask(order):
            try:
                with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
                    client.sendall(order.encode())
                    return client.recv(100).decode()
            except OSError:
                return None

        first = wait_until(lambda: ask("pid"), "the front answers")
        ask("crash")
        assert wait_until(lambda: ask("pid"), "the second front answers") != first
        assert alive(sleeper)
        shell.send_signal(signal.SIGTERM)
        assert shell.wait(PATIENCE_S) == 0
        assert alive(sleeper)
    finally:
        os.kill(sleeper, signal.SIGKILL)
        shell.kill()
        shell.stdout.close()
        log.close()


def test_front_and_zygote_get_only_their_own_descriptors(start, fakes, tmp_path):
    # One that our own parent leaks to us, and both ports on two loops.
    leak = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leak, True)
    port, rest = free_port(), free_port()
    process = subprocess.Popen(
        [
            fakes / "tensord",
            "serve",
            f"--port={port}",
            f"--rest_api_port={rest}",
            "--loops=2",
            "--model_base_path=/m",
        ],
        stderr=subprocess.DEVNULL,
        pass_fds=[leak],
    )
    try:

        def order(text):
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
                client.sendall(text)
                return client.recv(65536).decode()

        def front_pid():
            try:
                return int(order(b"pid"))
            except (OSError, ValueError):
                return None

        front = wait_until(front_pid, "the front answers")
        sockets = listening(front)
        # Our own connection is closed a moment after its answer has come.
        wait_until(
            lambda: sorted(inherited(front)) == [0, 1, 2, 3, *sockets],
            f"only 0 to 3 and {sockets} are left of {descriptors(front)}",
        )
        targets = descriptors(front)
        assert all(targets[fd].startswith("socket:") for fd in (3, *sockets))
        assert len({targets[fd] for fd in sockets}) == 4

        order(b"zygote 1")
        events = wait_until(lambda: order(b"events"), "a zygote")
        zygote = int(events.split("pid=")[1].split()[0])
        # Between fork and exec it still has ours.
        wait_until(lambda: sorted(descriptors(zygote)) == [0, 1, 2, 3], "the zygote's descriptors")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        os.close(leak)


def test_terminal_signals_reach_the_supervisor_alone(server):
    zygote, worker = server.start_zygote(), server.start_worker()
    server.order("ignore_drain")
    # As the terminal's driver does at Ctrl-C: to the whole foreground group.
    os.killpg(server.process.pid, signal.SIGINT)
    server.wait_for_event("drain")
    assert alive(zygote)
    assert alive(worker)


def test_options_reach_the_front(start):
    server = start(["--loops=2", "--model_name=a b", "--enable_batching", "--log_level=debug"])
    server.wait_for_front()
    assert server.order("options").splitlines() == [
        f"--port={server.port}",
        "--model_name=a b",
        "--model_base_path=/m",
        "--enable_batching=true",
        "--log_level=debug",
        "--loops=2",
    ]


def test_service_manager_hears_ready_and_stopping(start, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(PATIENCE_S)
        server = start(environment={"NOTIFY_SOCKET": path})
        assert manager.recv(100) == b"READY=1"
        environ = pathlib.Path(f"/proc/{server.wait_for_front()}/environ").read_bytes()
        assert b"NOTIFY_SOCKET" not in environ
        server.send(signal.SIGTERM)
        assert manager.recv(100) == b"STOPPING=1"


def test_unix_socket_is_served_and_removed_at_the_end(start, tmp_path):
    path = str(tmp_path / "grpc.sock")
    server = start([f"--grpc_socket_path={path}"])
    front = server.wait_for_front()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(b"pid")
        assert int(client.recv(100)) == front
    server.send(signal.SIGTERM)
    assert server.exit_code() == 0
    assert not os.path.exists(path)
