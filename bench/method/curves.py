# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The open-loop experiments: latency against load, goodput against overload; and their charts."""

import heapq
import random
import time

from method import cases, facts, rounds, servers
from method.load import closed_round, open_round
from method.svg import Chart

SHARES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)  # Of the weakest server's capacity, the same for all.
OVERLOADS = (0.5, 0.8, 1, 2, 5, 10)  # Of each server's own capacity.
DEADLINE_MS = 100
RECOVERY_SECONDS_MAX = 20.0  # Then it has not come back.
KINDS = {
    "gRPC sync": {"kind": "grpc_sync"},
    "gRPC queues": {"kind": "grpc_queues", "threads": cases.CPUS},
    "1 ms timer batcher": {"kind": "grpc_sync", "batch_rows": 32, "batch_us": 1000},
}


class Four:
    """tensord and the gRPC peers with one model."""

    def __init__(self, model, names=tuple(KINDS)):
        self.servers = {cases.OURS: servers.tensord(f"tensord {model}", [model])}
        for name in names:
            self.servers[name] = servers.Peer(name, models=[model], **KINDS[name])

    def __enter__(self):
        return self.servers

    def __exit__(self, *_):
        for server in self.servers.values():
            server.stop()


def capacity(server, workload, load, seconds):
    """Answers a second in a closed loop with the stock client."""
    rate = closed_round(server, workload, load, seconds)["requests_per_second"]
    if not rate:
        raise RuntimeError(f"nothing was answered to {workload.name} within {seconds:g} s")
    return rate


def latency_against_load(workload, seconds):
    """Per server and share of the weakest capacity: percentiles and CPU."""
    with Four(workload.model) as four:
        able = {n: capacity(s, workload, cases.STOCK_MANY, seconds) for n, s in four.items()}
        weakest = min(able.values())
        points = {name: [] for name in four}
        for share in SHARES:
            for name, server in four.items():
                rounds.show(f"{workload.name} at {share:.0%} of {weakest:.0f}/s: {name}")
                found = open_round(server, workload, rate=share * weakest, seconds=seconds)
                points[name].append({"share": share, "rate": share * weakest} | found)
        rounds.show("")
    return {"workload": workload.name, "capacity_per_second": able, "points": points}


def goodput_against_overload(workload, seconds):
    """Per server and multiple of its capacity: answers within the deadline, refusals."""
    with Four(workload.model) as four:
        points = {name: [] for name in four}
        able = {}
        for name, server in four.items():
            load = cases.Load("stock", 4, 2 * cases.CPUS)
            able[name] = capacity(server, workload, load, seconds)
            for times in OVERLOADS:
                rounds.show(f"{workload.name} at {times} x {able[name]:.0f}/s: {name}")
                found = open_round(
                    server,
                    workload,
                    rate=times * able[name],
                    seconds=seconds,
                    deadline_ms=DEADLINE_MS,
                )
                share = found["goodput_per_second"] / able[name]
                points[name].append({"times": times, "goodput_share": share} | found)
        rounds.show("")
    return {
        "workload": workload.name,
        "deadline_ms": DEADLINE_MS,
        "capacity_per_second": able,
        "points": points,
    }


def what_overload_leaves(workload, seconds, slice_seconds=0.5):
    """tensord: the part of its work that was for nobody, and how long it is not itself after."""
    server = facts.with_metrics(f"tensord {workload.model}", [workload.model])
    try:
        able = capacity(server, workload, cases.Load("stock", 4, 2 * cases.CPUS), seconds)
        quiet = open_round(server, workload, rate=able / 2, seconds=seconds)
        wasted, recovery = {}, {}
        for times in [t for t in OVERLOADS if t > 1]:
            rounds.show(f"{workload.name} after {times} x {able:.0f}/s")
            before = facts.run_seconds(server)
            more = {"seconds": seconds, "deadline_ms": DEADLINE_MS}
            open_round(server, workload, rate=times * able, **more)
            ended = time.monotonic()
            after = facts.run_seconds(server)
            wasted[times] = (after["wasted"] - before["wasted"]) / (after["run"] - before["run"])
            more = {"rate": able / 2, "seconds": slice_seconds, "warm_up": 0.0}
            recovery[times] = RECOVERY_SECONDS_MAX
            while time.monotonic() - ended < RECOVERY_SECONDS_MAX:
                begun = time.monotonic() - ended
                found = open_round(server, workload, deadline_ms=DEADLINE_MS, **more)
                if is_quiet(found, quiet):
                    recovery[times] = begun
                    break
        rounds.show("")
        return {"wasted": wasted, "recovery_seconds": recovery}
    finally:
        server.stop()


def is_quiet(found, quiet):
    """As it was before: nothing failed, and hardly anybody waited longer. Pure."""
    return found["failed"] == 0 and 0 < found["p90_us"] <= 2 * quiet["p90_us"]


def latency_chart(found):
    lines = {
        name: [(p["rate"], p["p99_us"] / 1000) for p in points if p["answered"] > 0]
        for name, points in found["points"].items()
    }
    title = f"{found['workload']}: 99th percentile of latency against load"
    return Chart(title, "requests a second", "ms", lines, log_y=True)


def goodput_chart(found):
    lines = {
        name: [(p["offered_per_second"], p["goodput_per_second"]) for p in points]
        for name, points in found["points"].items()
    }
    title = f"Answers within {found['deadline_ms']} ms when more is asked than can be done"
    return Chart(title, "asked a second", "answers a second", lines)


def ideal_p99(executors, share, jobs=200_000, seed=7):
    """M/D/c: the 99th percentile of latency in service times, by simulation. Pure."""
    generator = random.Random(seed)
    free = [0.0] * executors
    now, latencies = 0.0, []
    for _ in range(jobs):
        now += generator.expovariate(share * executors)
        start = max(now, heapq.heappop(free))
        heapq.heappush(free, start + 1.0)
        latencies.append(start + 1.0 - now)
    latencies.sort()
    return latencies[int(0.99 * len(latencies))]
