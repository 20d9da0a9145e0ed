# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of tensord alone: memory a connection, a worker's start, stages, the sandbox's cost."""

import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from method import cases, load, paired, servers
from method.places import BIN, BUILD, MODELS, ROOT, SCRATCH

METRICS_PATH = "/monitoring/prometheus/metrics"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + struct.pack(">I", 0)[1:] + b"\x04\x00" + bytes(4)
CONNECTIONS = 10_000
SWAPS = 5
PAUSE_SECONDS = 2.5  # More than a poll of the files, so that the version goes.
SMALL = [f"small_{i:02}" for i in range(20)]


def with_metrics(name, models, **flags):
    SCRATCH.mkdir(parents=True, exist_ok=True)
    monitoring = SCRATCH / "monitoring.config"
    monitoring.write_text(f'prometheus_config {{ enable: true path: "{METRICS_PATH}" }}')
    return servers.tensord(name, models, monitoring_config_file=monitoring, **flags)


def metrics(server):
    """Samples of the page: 'name{labels}' to value."""
    with urllib.request.urlopen(server.rest + METRICS_PATH, timeout=10) as page:
        lines = page.read().decode().splitlines()
    samples = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def total(samples, name, *labels):
    """Over all samples of that name that carry the given label pairs, as 'stage="read"'."""
    return sum(
        value
        for key, value in samples.items()
        if key.split("{")[0] == name and all(label in key for label in labels)
    )


def stages(server, model, protocol):
    """Mean microseconds of each stage of a model's requests, from the server's own histogram."""
    samples = metrics(server)
    found = {}
    for stage in ("read", "parse", "queue", "run", "write"):
        labels = (f'model_name="{model}"', f'protocol="{protocol}"', f'stage="{stage}"')
        count = total(samples, "tensord_stage_microseconds_count", *labels)
        if count:
            found[stage] = total(samples, "tensord_stage_microseconds_sum", *labels) / count
    return found


def run_seconds(server):
    """Of all runs so far, and of them for callers who had gone."""
    samples = metrics(server)
    return {
        "run": total(samples, ":tensorflow:core:graph_run_time_usecs") / 1e6,
        "wasted": total(samples, "tensord_wasted_run_seconds_total"),
    }


def socket_to_tensor(seconds):
    """An image by gRPC and as JSON: stages, and bytes copied a request in user space."""
    server = with_metrics("tensord stages", ["image_in"])
    try:
        found = {}
        for workload, how in ((cases.IMAGE, cases.ONE), (cases.IMAGE_JSON, cases.REST_ONE)):
            before = total(metrics(server), "tensord_copied_bytes_total")
            requests = total(metrics(server), "tensord_requests_total")
            measured = load.closed_round(server, workload, how, seconds)
            requests = total(metrics(server), "tensord_requests_total") - requests
            copied = total(metrics(server), "tensord_copied_bytes_total") - before
            protocol = "rest" if how.protocol == "rest" else "grpc"
            found[workload.name] = {
                "stages_us": stages(server, "image_in", protocol),
                "copied_bytes_per_request": copied / max(1, requests),
                "front_cpu_us": measured["cpu_us_per_request_by_process"].get("front"),
            }
        return found
    finally:
        server.stop()


def memory_of(process):
    return process.pss()


def idle_connections(count=CONNECTIONS):
    """KiB of the front a connection that said HTTP/2's preface and nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        return {"error": f"the limit of open files is {hard}; {wanted} are needed"}
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    server = servers.tensord("tensord idle", ["identity"])
    held = []
    try:
        before = server.front().pss()
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", server.grpc_port), timeout=30)
            connection.sendall(PREFACE)
            held.append(connection)
        for connection in held:
            connection.recv(64)  # The server's settings: it took the connection.
        time.sleep(1)
        return {"connections": count, "kib": (server.front().pss() - before) / 1024 / count}
    except OSError as error:
        return {"error": f"{len(held)} connections, then: {error}"}
    finally:
        for connection in held:
            connection.close()
        server.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def sandbox(arena, seconds):
    """CPU a request of a small model, 64 in flight: the default sandbox over none, in turns."""
    started = {}
    try:
        started["off"] = servers.tensord("tensord unconfined", ["identity"], sandbox="off")
        started["on"] = servers.tensord("tensord confined", ["identity"])

        def one(server):
            return lambda: load.closed_round(server, cases.IDENTITY, cases.MANY, seconds)

        contestants = {name: one(server) for name, server in started.items()}
        roots = [server.pid for server in started.values()]
        taken = arena.take_turns("sandbox", contestants, roots)
    finally:
        for server in started.values():
            server.stop()
    ratio = paired.paired_ratio(taken, "on", "off", "cpu_us_per_request")
    if ratio is None:
        raise RuntimeError("no turn counts: all were disturbed")
    return {
        "cpu_ratio": ratio.as_dict(),
        "cpu_us": {n: paired.median_of(taken, n, "cpu_us_per_request") for n in contestants},
    }


LOADED = re.compile(r"loaded in (\S+), warmed up with \w+ in (\S+) ")
AVAILABLE = re.compile(r"version (\d+): LOADING -> AVAILABLE after (\S+)")
UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def milliseconds(text):
    """'1.5s', '8.2ms', '1m2.5s' as Abseil prints durations."""
    return sum(float(n) * UNITS[u] for n, u in re.findall(r"([\d.]+)(ns|us|µs|ms|s|m)", text))


def worker_starts(log):
    """Per version: from the decision to load until it serves, less its load and warm-up."""
    available = {m[1]: milliseconds(m[2]) for m in AVAILABLE.finditer(log)}
    spent = {}
    for line in log.splitlines():
        found = LOADED.search(line)
        version = re.search(r"version (\d+): loaded in", line)
        if found and version:
            spent[version[1]] = milliseconds(found[1]) + milliseconds(found[2])
    return {v: available[v] - spent[v] for v in available if v in spent}


def workers():
    """Start of a worker in ms, from versions that appear one after the other; its memory."""
    base = SCRATCH / "swapped/identity"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    source = MODELS / "identity/1"
    shutil.copytree(source, base / "1")
    flags = {"file_system_poll_wait_seconds": 1}
    server = servers.tensord("tensord swaps", {"identity": str(base)}, **flags)
    try:
        for version in range(2, SWAPS + 2):
            shutil.copytree(source, base.parent / f"v{version}")
            (base.parent / f"v{version}").rename(base / str(version))
            wait_for(lambda v=version: f"version {v}: loaded in" in server.log())
        starts = worker_starts(server.log())
        later = [starts[str(v)] for v in range(2, SWAPS + 2) if str(v) in starts]
        worker = max(server.workers(), key=lambda p: p.started)
        return {"start_ms": sorted(later), "private_mb": private_bytes(worker.pid) / 1e6}
    finally:
        server.stop()


def private_bytes(pid):
    """Memory that ends with the process."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        lines = file.read().splitlines()
    return 1024 * sum(int(li.split()[1]) for li in lines if li.startswith("Private_"))


def wait_for(check, seconds=120):
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            raise RuntimeError("a version that was put in place did not load")
        time.sleep(0.05)


def tcp_round_trip(seconds):
    return load.run([BIN / "tcp_floor", seconds])


def micro(name, seconds):
    """The rows of one Google Benchmark program: CPU a call, and an item where it counts them."""
    program = BUILD / "release/bench/micro" / name
    command = [program, "--benchmark_format=json", f"--benchmark_min_time={seconds}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = []
    for row in load.json.loads(done.stdout)["benchmarks"]:
        scale = {"ns": 1e-3, "us": 1.0, "ms": 1e3}[row["time_unit"]]
        items = row.get("items_per_second", 0)
        rows.append(
            {
                "name": row["name"],
                "cpu_us": row["cpu_time"] * scale,
                "cpu_ns_per_item": 1e9 / items if items else None,
            }
        )
    return rows


def comings_and_goings(places, log, end):
    """Puts a version in place, takes it away when it was loaded, and again until `end`."""
    source, base = places
    aside = base.parent / f"{base.name}_aside"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(source, aside, copy_function=os.link)  # Gigabytes are not copied.
    loads = 0
    while time.monotonic() < end:
        aside.rename(base / "2")
        while log().count("model other, version 2: loaded in") == loads and time.monotonic() < end:
            time.sleep(0.2)
        loads = log().count("model other, version 2: loaded in")
        (base / "2").rename(aside)
        time.sleep(PAUSE_SECONDS)
    return loads


def beside_swaps(seconds, rate, big=None):
    """Zipf traffic over 20 small models, quiet and while another model's versions come and go.

    big: a version directory to swap in place of a small one.
    """
    base = SCRATCH / "swapped_beside/other"
    shutil.rmtree(base.parent, ignore_errors=True)
    base.mkdir(parents=True)
    shutil.copytree(MODELS / "small_00/1", base / "1")
    models = {m: str(MODELS / m) for m in SMALL} | {"other": str(base)}
    server = servers.tensord("tensord beside", models, file_system_poll_wait_seconds=1)
    zipf = load.Workload("20 models", ",".join(SMALL), ("x:float:1,64",))
    try:
        quiet = load.open_round(server, zipf, rate=rate, seconds=seconds)
        with ThreadPoolExecutor(1) as pool:
            source = big or MODELS / "small_00/2"
            end = time.monotonic() + seconds + 1
            swaps = pool.submit(comings_and_goings, (source, base), server.log, end)
            busy = load.open_round(server, zipf, rate=rate, seconds=seconds)
            loaded = swaps.result()
        return {"quiet": quiet, "busy": busy, "loads": loaded, "p99_ratio": p99_ratio(busy, quiet)}
    finally:
        server.stop()


def two_gigabytes():
    """The version directory of a model of that size, made when it is not there."""
    make = [sys.executable, ROOT / "bench/models/make_models.py", "--out", MODELS]
    subprocess.run([*make, "--only", "two_gigabytes"], check=True, capture_output=True)
    return MODELS / "two_gigabytes/1"


def p99_ratio(busy, quiet):
    return busy["p99_us"] / max(1, quiet["p99_us"])
