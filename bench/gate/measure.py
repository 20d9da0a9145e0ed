# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the figures of checks.py: each function gives some of them, and fails alone."""

from method import cases, curves, facts, load, paired, rounds, servers
from method.cases import ENGINE, OURS
from method.places import BUILD

MLP_BATCHES = (1, 2, 4, 8, 16, 32, 64)
LIGHT_SHARE = 0.1
WITHOUT_BATCHING = 'model { key: "%s" value { batching { enabled: false } } }'


class Gate:
    """`seconds` a round, `turns` palindromes a case."""

    def __init__(self, arena, seconds):
        self.arena = arena
        self.seconds = seconds

    def contest(self, *picked):
        """Summaries by workload and load, of some of the cases."""
        with cases.Field(list(picked)) as field:
            return [counted(field.play(case, self.arena, self.seconds)) for case in picked]

    def small(self):
        sync = ("gRPC sync",)
        many, stock, rest, one = self.contest(
            cases.of(cases.IDENTITY, cases.MANY, *sync),
            cases.of(cases.IDENTITY, cases.STOCK_MANY),
            cases.of(cases.IDENTITY, cases.REST_MANY),
            cases.of(cases.IDENTITY, cases.ONE, engine=0),
        )
        floor = facts.tcp_round_trip(self.seconds)
        front = many["contestants"][OURS]["by_process"]["front"]
        return {
            "small_beyond_us": beyond_engine(many),
            "small_sync_ratio": ratio(many, "gRPC sync", "CPU"),
            "stock_beyond_us": beyond_engine(stock),
            "rest_beyond_us": beyond_engine(rest),
            "front_rate": 1e6 / front,
            "idle_ratio": one["contestants"][OURS]["p50_us"] / floor["p50_us"],
        }

    def images(self):
        (stock,) = self.contest(cases.of(cases.IMAGE, cases.STOCK_ONE))
        inside = facts.socket_to_tensor(self.seconds)
        rows = {row["name"]: row for row in facts.micro("json_bench", 0.3)}
        rapid = rows["ImageToTensorRapidJson"]["cpu_us"]
        tensor_bytes = 224 * 224 * 3 * 4 + 3 * 4  # In and out.
        return {
            "image_beyond_us": beyond_engine(stock),
            "image_copies": inside[cases.IMAGE.name]["copied_bytes_per_request"] / tensor_bytes,
            "json_front_ms": inside[cases.IMAGE_JSON.name]["front_cpu_us"] / 1000,
            "json_rapid_ratio": rapid / rows["ImageToTensor"]["cpu_us"],
            "json_float_ns": rows["FloatsToText"]["cpu_ns_per_item"],
        }

    def light_load(self):
        """Poisson arrivals at a tenth of the capacity, with and without batching, in turns."""
        model = cases.WIDE_DEEP.model
        off = servers.tensord("tensord unbatched", [model], settings=WITHOUT_BATCHING % model)
        on = servers.tensord("tensord batched", [model])
        try:
            able = curves.capacity(off, cases.WIDE_DEEP, cases.STOCK_MANY, self.seconds)
            more = {"rate": LIGHT_SHARE * able, "seconds": self.seconds}
            contestants = {
                "off": lambda: load.open_round(off, cases.WIDE_DEEP, **more),
                "on": lambda: load.open_round(on, cases.WIDE_DEEP, **more),
            }
            taken = self.arena.take_turns("light load", contestants, [on.pid, off.pid])
            return {
                f"light_{p}_ratio": paired.paired_ratio(taken, "on", "off", f"{p}_us").median
                for p in ("p50", "p99")
            }
        finally:
            on.stop()
            off.stop()

    def idle(self):
        found = facts.idle_connections()
        if "error" in found:
            raise RuntimeError(found["error"])
        return {"connection_kib": found["kib"]}

    def workers(self):
        found = facts.workers()
        starts = found["start_ms"]
        return {
            "worker_start_ms": starts[len(starts) // 2],
            "worker_private_mb": found["private_mb"],
        }

    def sandbox(self):
        return {"sandbox_ratio": facts.sandbox(self.arena, 4 * self.seconds)["cpu_ratio"]["median"]}

    def best_batch(self):
        """Whole-server rate at saturation against fixed batch sizes, all in turns."""
        model = cases.MLP.model
        started = {"chosen": servers.tensord("tensord chosen", [model])}
        try:
            for rows in MLP_BATCHES:
                parameters = BUILD / f"bench/batch_{rows}.config"
                parameters.write_text(
                    f"max_batch_size {{ value: {rows} }} batch_timeout_micros {{ value: 200 }}"
                )
                started[f"fixed {rows}"] = servers.tensord(
                    f"tensord fixed {rows}",
                    [model],
                    enable_batching="true",
                    batching_parameters_file=parameters,
                )

            def one(server):
                return lambda: load.closed_round(server, cases.MLP, cases.MANY, self.seconds)

            contestants = {name: one(server) for name, server in started.items()}
            roots = [server.pid for server in started.values()]
            taken = self.arena.take_turns("best batch", contestants, roots)
            key = "requests_per_second"
            best = max(
                started, key=lambda n: 0 if n == "chosen" else paired.median_of(taken, n, key)
            )
            return {
                "best_batch": best,
                "best_batch_ratio": paired.paired_ratio(taken, "chosen", best, key).median,
            }
        finally:
            for server in started.values():
                server.stop()

    def efficiency(self):
        picked = {
            "mobilenet_efficiency": cases.MOBILENET,
            "resnet_efficiency": cases.RESNET,
            "bert_efficiency": cases.BERT,
        }
        found = {}
        for key, workload in picked.items():
            (summary,) = self.contest(cases.of(workload, cases.SOME, engine=cases.CPUS))
            found[key] = 1 / ratio(summary, ENGINE, "rate")
        return found

    def overload(self):
        found = curves.goodput_against_overload(cases.BURN, 4 * self.seconds)
        ours = {p["times"]: p for p in found["points"][OURS]}
        over = [p for times, p in ours.items() if times >= 2]
        return {
            "goodput_2x": ours[2]["goodput_share"],
            "goodput_5x": ours[5]["goodput_share"],
            "goodput_10x": ours[10]["goodput_share"],
            "accepted_p99_ms": max(p["p99_us"] for p in over) / 1000,
            "refusal_ms": max(p["refusal_p50_us"] for p in over) / 1000,
        }

    def after_overload(self):
        found = curves.what_overload_leaves(cases.BURN, 4 * self.seconds)
        return {
            "wasted_share": max(found["wasted"].values()),
            "recovery_seconds": max(found["recovery_seconds"].values()),
        }

    def steady(self):
        """At 70 % of what it can do, against as many executors fed from one queue."""
        with curves.Four(cases.BURN.model, names=()) as four:
            server = four[OURS]
            able = curves.capacity(server, cases.BURN, cases.Load("stock", 4, 4), 2 * self.seconds)
            seconds = max(10.0, 8 * self.seconds)
            found = load.open_round(server, cases.BURN, rate=0.7 * able, seconds=seconds)
        service_us = cases.CPUS / able * 1e6
        ideal = curves.ideal_p99(cases.CPUS, 0.7) * service_us
        return {"steady_p99_ratio": found["p99_us"] / ideal}

    def beside(self):
        big = facts.two_gigabytes()
        found = facts.beside_swaps(max(30.0, 10 * self.seconds), rate=500, big=big)
        if not found["loads"]:
            raise RuntimeError("the big model did not load in that time")
        return {"beside_load_ratio": found["p99_ratio"]}


def counted(summary):
    """The summary, of which at least one turn counts."""
    if summary["turns"] == 0:
        disturbances = "; ".join(summary["disturbances"]) or "nobody was measured"
        raise RuntimeError(f"no turn of '{summary['case']}' counts: {disturbances}")
    return summary


def ratio(summary, name, word):
    """The median over the turns."""
    return summary["contestants"][name]["ratios"][word]["median"]


def beyond_engine(summary):
    contestants = summary["contestants"]
    return contestants[OURS]["cpu_us_per_request"] - contestants[ENGINE]["cpu_us_per_request"]


def measure(gate, parts):
    """All figures, and for parts that failed the reason."""
    figures, reasons = {}, {}
    for part in parts:
        try:
            figures |= getattr(gate, part)()
        except (RuntimeError, OSError, KeyError, AttributeError, TypeError, TimeoutError) as error:
            rounds.show("")
            reasons[part] = f"{type(error).__name__}: {error}"
    return figures, reasons
