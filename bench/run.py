# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What a request costs: tensord beside the bare engine loop, in interleaved rounds of one run.

Prints a table and writes bench/results/latest.json. CPU is the sum over all processes of the
server; "beyond the engine" is that minus the CPU of the same run in engine_loop, which has no
server around it.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from local_server import BIN, LocalServer  # noqa: E402

MODELS = ROOT / "build/test_models"
RESULTS = ROOT / "bench/results"

# Name, model, the input that the generator makes.
WORKLOADS = [
    ("identity, 64 bytes", "bench_identity", "x:float:1,16"),
    ("MLP 64-128-64-10", "bench_mlp", "x:float:1,64"),
    ("image, 602 KB", "bench_image", "image:float:1,224,224,3"),
]
# Protocol, connections, requests in flight. REST keeps one request a connection in flight.
LOADS = [("grpc", 1, 1), ("grpc", 4, 64), ("rest", 1, 1), ("rest", 64, 64)]


def build_engine_loop():
    subprocess.run(
        ["cmake", "--build", str(ROOT / "build/release"), "--target", "engine_loop"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def runtime_directory():
    found = sorted((ROOT / ".venv").glob("lib/python*/site-packages/tensorflow"))
    if not found:
        sys.exit("no TensorFlow in .venv: ./run build installs it")
    return found[0]


def engine_round(model, threads, seconds):
    directory = max((MODELS / model).iterdir(), key=lambda path: int(path.name))
    command = [BIN / "engine_loop", runtime_directory(), directory, "1", str(threads), str(seconds)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def server_round(server, model, load, made_input, seconds):
    protocol, connections, in_flight = load
    command = [BIN / "tensord", "bench", "--json", "--model", model, "--input", made_input]
    command += ["--port", str(server.rest_port if protocol == "rest" else server.grpc_port)]
    command += ["--connections", str(connections), "--in_flight", str(in_flight)]
    command += ["--seconds", str(seconds), "--warm_up_seconds", "0.5"]
    command += ["--server_pid", str(server.pid)]
    if protocol == "rest":
        command.append("--rest")
    done = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"tensord bench failed: {done.stderr}")
    return json.loads(done.stdout)


def median(rounds, key):
    return statistics.median(round_[key] for round_ in rounds)


def measure(server, seconds, rounds):
    """Engine and server take turns, so that a machine that changes its speed changes both."""
    rows = []
    for name, model, made_input in WORKLOADS:
        engine, served = [], {load: [] for load in LOADS}
        for _ in range(rounds):
            engine.append(engine_round(model, 1, seconds))
            for load in LOADS:
                print(f"\r{name}: {load[0]}, {load[2]} in flight ...   ", end="", file=sys.stderr)
                served[load].append(server_round(server, model, load, made_input, seconds))
        rows += [summarise(name, load, engine, served[load]) for load in LOADS]
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return rows


def summarise(name, load, engine, served):
    engine_cpu = median(engine, "cpu_us_per_run")
    by_process = {
        role: statistics.median(s["cpu_us_per_request_by_process"].get(role, 0) for s in served)
        for role in served[0]["cpu_us_per_request_by_process"]
    }
    return {
        "workload": name,
        "protocol": load[0],
        "connections": load[1],
        "in_flight": load[2],
        "failed": sum(s["failed"] for s in served),
        "requests_per_second": median(served, "requests_per_second"),
        "p50_us": median(served, "p50_us"),
        "p99_us": median(served, "p99_us"),
        "cpu_us_per_request": median(served, "cpu_us_per_request"),
        "cpu_us_per_request_by_process": by_process,
        "engine_cpu_us_per_run": engine_cpu,
        "engine_runs_per_second": median(engine, "runs_per_second"),
        "beyond_engine_cpu_us": median(served, "cpu_us_per_request") - engine_cpu,
    }


def micro(name, seconds):
    """The rows of one Google Benchmark program: CPU a call, and an item where it counts them."""
    program = ROOT / "build/release/bench/micro" / name
    command = [program, "--benchmark_format=json", f"--benchmark_min_time={seconds}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = []
    for row in json.loads(done.stdout)["benchmarks"]:
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


def micro_table(rows):
    lines = [f"{'in one process':32} {'CPU us':>10} {'ns an item':>11}"]
    for row in rows:
        item = row["cpu_ns_per_item"]
        lines.append(
            f"{row['name']:32} {row['cpu_us']:10.2f} {'' if item is None else f'{item:11.1f}'}"
        )
    return "\n".join(lines)


def machine():
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release()}


def table(rows):
    header = (
        f"{'workload':20} {'load':14} {'req/s':>8} {'p50 us':>7} {'p99 us':>7} {'CPU us':>8} "
        f"{'front':>7} {'worker':>7} {'engine':>7} {'beyond':>7} {'failed':>6}"
    )
    lines = [header, "-" * len(header)]
    for row in rows:
        cpu = row["cpu_us_per_request_by_process"]
        lines.append(
            f"{row['workload']:20} {row['protocol'] + ' x ' + str(row['in_flight']):14} "
            f"{row['requests_per_second']:8.0f} {row['p50_us']:7.0f} {row['p99_us']:7.0f} "
            f"{row['cpu_us_per_request']:8.1f} {cpu.get('front', 0):7.1f} "
            f"{cpu.get('worker', 0):7.1f} {row['engine_cpu_us_per_run']:7.1f} "
            f"{row['beyond_engine_cpu_us']:7.1f} {row['failed']:6}"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each, in turn")
    options = parser.parse_args()
    build_engine_loop()
    folder = ROOT / "build/bench"
    models = {model: str(MODELS / model) for _, model, _ in WORKLOADS}
    server = LocalServer(folder, models=models).start().wait_ready()
    try:
        rows = measure(server, options.seconds, options.rounds)
    finally:
        server.stop()
    facts = machine()
    print(
        f"{facts['cpu']}, {facts['cpus']} CPUs, Linux {facts['kernel']}; medians of "
        f"{options.rounds} rounds of {options.seconds:g} s; server and client share the CPUs\n"
    )
    print(table(rows))
    parts = micro("json_bench", 0.5) + micro("sched_bench", 0.2)
    print("\n" + micro_table(parts))
    RESULTS.mkdir(parents=True, exist_ok=True)
    document = {"machine": facts, "rows": rows, "micro": parts}
    (RESULTS / "latest.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
