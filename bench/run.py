# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Measures tensord beside the bare engine and other servers, in interleaved rounds of one run.

  run.py                a short run: the main cases, about ten minutes
  run.py --full         every case, the Python servers, load curves and overload: an hour and more
  run.py --only WORD    the cases whose title has the word
  run.py --gate         the project's goals as checks, short ones only (--long: all)

  run.py --publish      the tables and charts of docs/ and README, from the last full run

Prints tables and writes bench/results/NAME.json. How it measures, and what the columns mean, is in
docs/performance.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gate import checks, measure
from method import cases, curves, facts, machine, places, report, rounds, svg
from method import document as written

FACT_MODELS = ["identity", "image_in", "bodies", *facts.SMALL]


def prepare(models, as_built):
    """Programs and models that `./run build` does not make. None named: all models."""
    targets = ["engine_loop", "json_bench", "sched_bench", "peer_server", "grpc_load", "tcp_floor"]
    build = ["cmake", "--build", places.BUILD / "release", "--target", *targets]
    if not as_built:
        step(build, "the peers cannot be built: ./run bench installs what they need")
    make = [sys.executable, places.ROOT / "bench/models/make_models.py", "--out", places.MODELS]
    for model in models:
        make += ["--only", model]
    step(make, "the bench models cannot be made")


def step(command, words):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        sys.exit(f"{tail}\nbench: {words}")


def picked(options):
    if options.only:
        found = [c for c in cases.CASES if options.only.lower() in c.title.lower()]
        return found or sys.exit(f"no case has '{options.only}' in its title")
    return [case for case in cases.CASES if options.full or case.quick]


def play(options, arena, chosen):
    """The closed-loop cases; servers that are absent, and why."""
    summaries = []
    with cases.Field(chosen) as field:
        for case in chosen:
            summaries.append(field.play(case, arena, options.seconds))
            print(report.case_table(summaries[-1]) + "\n", flush=True)
        for name, reason in field.absent.items():
            print(f"{name} was not measured: {reason}\n")
        return summaries, field.absent


def gather_facts(arena, seconds):
    """Figures that are no contest; what failed says why."""
    found = {"tcp_round_trip": facts.tcp_round_trip(seconds)}
    for name, part in {
        "socket_to_tensor": lambda: facts.socket_to_tensor(seconds),
        "workers": facts.workers,
        "sandbox": lambda: facts.sandbox(arena, seconds),
        "idle_connections": facts.idle_connections,
        "zipf": lambda: facts.beside_swaps(max(10, 4 * seconds), rate=2000),
    }.items():
        rounds.show(name.replace("_", " "))
        try:
            found[name] = part()
        except (RuntimeError, OSError) as error:
            found[name] = {"error": str(error)}
    rounds.show("")
    found["micro"] = facts.micro("json_bench", 0.5) + facts.micro("sched_bench", 0.2)
    return found


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(f"wrote {path.relative_to(places.ROOT)}")


def publish(document):
    """What is checked in of a full run."""
    write(places.RESULTS / "summary.json", json.dumps(written.summary(document), indent=1) + "\n")
    charts = document.get("curves", {})
    if charts:
        latency, overload = charts["latency"], charts["overload"]
        write(places.CHARTS / "latency.svg", svg.draw(curves.latency_chart(latency)))
        write(places.CHARTS / "overload.svg", svg.draw(curves.goodput_chart(overload)))
    for name, make in {
        "docs/performance.md": written.markdown,
        "README.md": written.headline,
    }.items():
        page = places.ROOT / name
        write(page, written.with_part(page.read_text(), make(document)))


def gather_curves(options):
    against_load = curves.latency_against_load(cases.WIDE_DEEP, 4 * options.seconds)
    print(report.curve_table(against_load, "share", "p99_us") + "\n", flush=True)
    overload = curves.goodput_against_overload(cases.BURN, 4 * options.seconds)
    print(report.curve_table(overload, "times", "goodput_share") + "\n", flush=True)
    return {"latency": against_load, "overload": overload}


def benchmark(options, arena):
    chosen = picked(options)
    models = [] if options.full else [*cases.models_of(chosen), *FACT_MODELS]
    prepare(models, options.as_built)
    document = {"machine": machine.describe(), "seconds": options.seconds}
    print(report.heading(document["machine"], options.turns, options.seconds) + "\n", flush=True)
    document["cases"], document["absent"] = play(options, arena, chosen)
    if not options.only:
        document["facts"] = gather_facts(arena, options.seconds)
        print(report.facts_table(document["facts"]) + "\n", flush=True)
    if options.full:
        document["curves"] = gather_curves(options)
    return document


def gate(options, arena):
    prepare([] if options.long else ["wide_deep", *FACT_MODELS], options.as_built)
    parts = checks.parts(options.long)
    figures, reasons = measure.measure(measure.Gate(arena, options.seconds), parts)
    verdicts = checks.judge(figures, reasons, options.long)
    print(report.gate_table(machine.describe(), verdicts))
    document = {"machine": machine.describe(), "figures": figures, "not_measured": reasons}
    return document, all(v.passed for v in verdicts)


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="everything")
    parser.add_argument("--gate", action="store_true", help="check the goals; fails when one fails")
    parser.add_argument("--long", action="store_true", help="with --gate: the long checks too")
    parser.add_argument("--as-built", action="store_true", help="build nothing first")
    parser.add_argument("--publish", action="store_true", help="docs/ from the last full run")
    parser.add_argument("--only", metavar="WORD", help="cases whose title has this word")
    parser.add_argument("--seconds", type=float, help="length of one round (1; --full: 2)")
    parser.add_argument("--turns", type=int, help="turns of each case (4; --full: 16; --gate: 3)")
    parser.add_argument("--name", help="of the results (latest, full or gate)")
    parser.add_argument(
        "--keep-disturbed", action="store_true", help="count rounds that others disturbed, too"
    )
    options = parser.parse_args()
    kind = "gate" if options.gate else "full" if options.full else "latest"
    options.seconds = options.seconds or {"full": 2.0}.get(kind, 1.0)
    options.turns = options.turns or {"full": 16, "gate": 3}.get(kind, 4)
    options.name = options.name or kind
    return options


def main():
    options = parse()
    if options.publish:
        publish(json.loads((places.RESULTS / "full.json").read_text()))
        return 0
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # As Ctrl-C: the servers are ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    arena = rounds.Arena(options.turns, strict=not options.keep_disturbed)
    passed = True
    try:
        if options.gate:
            document, passed = gate(options, arena)
        else:
            document = benchmark(options, arena)
    except RuntimeError as error:
        sys.exit(f"bench: {error}")
    document["rounds"] = arena.as_dict()
    document["minutes"] = round((time.monotonic() - begun) / 60, 1)
    places.RESULTS.mkdir(parents=True, exist_ok=True)
    path = places.RESULTS / f"{options.name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(
        f"{arena.kept} turns counted, {arena.dropped} made again because others disturbed them; "
        f"{document['minutes']:g} minutes; wrote {path.relative_to(places.ROOT)}"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
