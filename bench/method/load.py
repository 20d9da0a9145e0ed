# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""One round of load on one server, or of the bare engine: a dict of metrics."""

import json
import os
import subprocess
from dataclasses import dataclass

from method.places import BIN, MODELS, runtime_directory


@dataclass(frozen=True)
class Workload:
    """What is asked."""

    name: str
    model: str
    inputs: tuple  # As `tensord bench --input`.
    body: str = ""  # A file of build/bench_models/bodies, for REST.


@dataclass(frozen=True)
class Load:
    """How it is asked, in a closed loop."""

    protocol: str  # grpc, rest, or stock: a gRPC C++ client.
    connections: int
    in_flight: int

    def __str__(self):
        client = {"grpc": "gRPC", "rest": "REST", "stock": "gRPC C++ client"}[self.protocol]
        return f"{client} x {self.in_flight}"


def run(command):
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode != 0 and not done.stdout.startswith("{"):
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise RuntimeError(f"{command[0]} failed: {words[-1] if words else done.returncode}")
    return json.loads(done.stdout)


def engine_round(model, loops, intra, seconds, rows=1):
    """The bare engine: so many loops in one process, no server around them."""
    directory = max((MODELS / model).iterdir(), key=lambda path: int(path.name))
    command = [BIN / "engine_loop", runtime_directory(), directory, rows, loops, seconds, intra]
    found = run(command)
    return {
        "requests_per_second": found["runs_per_second"],
        "cpu_us_per_request": found["cpu_us_per_run"],
        "p50_us": found["wall_us_per_run"],
        "failed": 0,
    }


def stock_command(server, workload, load, *, seconds, warm_up, rate=0, deadline_ms=0):
    return [
        BIN / "grpc_load",
        server.grpc_port,
        workload.model,
        "+".join(workload.inputs),
        load.in_flight,
        load.connections,
        seconds,
        warm_up,
        rate,
        deadline_ms,
        server.pid,
    ]


def closed_round(server, workload, load, seconds, warm_up=0.4):
    if load.protocol == "stock":
        return run(stock_command(server, workload, load, seconds=seconds, warm_up=warm_up))
    rest = load.protocol == "rest"
    command = [BIN / "tensord", "bench", "--json", "--model", workload.model]
    command += ["--port", server.rest_port if rest else server.grpc_port]
    if rest and workload.body:
        command += ["--body_file", MODELS / "bodies" / workload.body]
    else:
        for made in workload.inputs:
            command += ["--input", made]
    command += ["--connections", load.connections, "--in_flight", load.in_flight]
    command += ["--seconds", seconds, "--warm_up_seconds", warm_up, "--server_pid", server.pid]
    if rest:
        command.append("--rest")
    if getattr(server, "PATH", ""):
        command += ["--path", server.PATH]
    return run(command)


def open_round(server, workload, *, rate, seconds, deadline_ms=0, connections=4, warm_up=1.0):
    """Poisson arrivals from a stock gRPC C++ client; latency from the intended send time."""
    load = Load("stock", connections, 0)
    more = {"seconds": seconds, "warm_up": warm_up, "rate": rate, "deadline_ms": deadline_ms}
    return run(stock_command(server, workload, load, **more))
