# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Tables for people, from the documents that run.py writes. Pure functions."""

from gate import checks

from method import machine, paired
from method.cases import ENGINE, OURS
from method.rounds import AGAIN
from method.table import text_table

# What the project aims at, beside the figures it aims for: the case's title and what is aimed at.
AIMS = {
    "identity, 64 bytes: gRPC x 64": "aim: at most 5 us beyond the engine, gRPC sync at least x 6",
    "identity, 64 bytes: gRPC C++ client x 64": "aim: at most 12 us beyond the engine",
    "identity, 64 bytes: gRPC x 1": "aim: p50 at most 1.6 TCP round trips",
    "identity, 64 bytes: REST x 64": "aim: at most 10 us beyond the engine",
    "image, 602 KB: gRPC C++ client x 1": "aim: at most 110 us beyond the engine",
    "image, 1.7 MB JSON: REST x 1": "aim: at most 2,300 us of the front",
    "MobileNetV2: gRPC x 4": "aim: at least 0.97 of the bare engine's rate",
    "ResNet-50: gRPC x 4": "aim: at least 0.99 of the bare engine's rate",
    "BERT-base, 128 tokens: gRPC x 4": "aim: at least 0.99 of the bare engine's rate",
}


def heading(facts, turns, seconds):
    lines = [
        machine.sentence(facts),
        f"{turns} turns there and back, rounds of {seconds:g} s; all share the CPUs.",
        "Medians; ratios are other / tensord with 95 % intervals, '=' where tensord",
        "differs as much from itself.",
    ]
    return "\n".join(lines)


def ratio_words(row, word, same):
    """As '6.10 [5.92, 6.31]', with '=' when it is no more than A/A shows."""
    found = row["ratios"].get(word)
    if not found:
        return ""
    ratio = paired.Ratio(**found)
    if same and not paired.differs(ratio, paired.Ratio(**same)):
        return f"{ratio} ="
    return str(ratio)


def case_table(case):
    contestants = case["contestants"]
    engine = contestants.get(ENGINE, {}).get("cpu_us_per_request")
    same = contestants.get(AGAIN, {}).get("ratios", {})
    rows = []
    for name, row in contestants.items():
        cpu = row["cpu_us_per_request"]
        beyond = None if engine is None or cpu is None or name == ENGINE else cpu - engine
        words = {w: "" if name == AGAIN else same.get(w) for w in ("CPU", "rate", "p50", "p99")}
        ratios = [ratio_words(row, w, words[w]) for w in words]
        rows.append([name, row["requests_per_second"], row["p50_us"], row["p99_us"], cpu, beyond])
        rows[-1] += [row["failed"], *ratios]
    header = ["", "req/s", "p50 us", "p99 us", "CPU us", "beyond", "failed"]
    header += [f"{word} / tensord" for word in ("CPU", "rate", "p50", "p99")]
    note = f"  ({AIMS[case['case']]})" if case["case"] in AIMS else ""
    lines = [f"{case['case']}{note}", text_table(header, rows)]
    processes = contestants[OURS]["by_process"]
    if processes:
        parts = ", ".join(f"{role} {cpu:.1f}" for role, cpu in processes.items() if cpu)
        lines.append(f"tensord's CPU us by process: {parts}")
    if case["disturbed_rounds"]:
        lines.append(f"{case['disturbed_rounds']} rounds disturbed: {case['disturbances'][0]} ...")
    return "\n".join(lines)


def curve_table(found, at, key):
    """One row a point of the load, one column a server."""
    names = list(found["points"])
    columns = [found["points"][name] for name in names]
    rows = []
    for points in zip(*columns, strict=True):
        rows.append([f"{points[0][at]:g}", *(float(p[key]) for p in points)])
    able = ", ".join(f"{n} {r:.0f}/s" for n, r in found["capacity_per_second"].items())
    title = f"{found['workload']}: {key} at a load of ... times capacity ({able})"
    return f"{title}\n" + text_table(["load", *names], rows)


def facts_table(facts):
    """Figure, aim. What could not be measured says why."""
    rows = [["TCP round trip, p50 us", facts["tcp_round_trip"]["p50_us"], ""]]
    idle = facts["idle_connections"]
    words = f"idle connections, KiB each ({idle.get('connections', 0):,})"
    rows.append([words, idle.get("kib"), idle.get("error", "at most 32")])
    workers = facts["workers"]
    starts = workers.get("start_ms") or [None]
    rows.append(["start of a worker beyond its load, ms", starts[len(starts) // 2], "at most 20"])
    rows.append(
        ["private MB of a worker with a tiny model", workers.get("private_mb"), "at most 15"]
    )
    sandbox = facts["sandbox"]
    words = "CPU a small Predict in the sandbox / without"
    rows.append([words, sandbox_words(sandbox), sandbox.get("error", "at most 1.01")])
    rows += socket_rows(facts["socket_to_tensor"])
    zipf = facts["zipf"]
    if "error" not in zipf:
        rows.append(["20 models, Zipf, 2,000/s: p99 us", float(zipf["quiet"]["p99_us"]), ""])
        words = f"  while another swaps ({zipf['loads']} loads): p99 us"
        rows.append([words, float(zipf["busy"]["p99_us"]), "at most x 2"])
    for row in facts["micro"]:
        item = row["cpu_ns_per_item"]
        rows.append([f"in one process: {row['name']}, us", row["cpu_us"], micro_aim(row["name"])])
        if item and "Floats" in row["name"]:
            rows.append(["  ns a number", item, "at most 34" if "Rapid" not in row["name"] else ""])
    errors = [
        f"{name}: not measured: {found['error']}"
        for name, found in facts.items()
        if isinstance(found, dict) and "error" in found
    ]
    return "\n".join([text_table(["figure", "measured", "aim"], rows), *errors])


def sandbox_words(found):
    """As '1.004 [0.998, 1.009]': a hundredth is what is aimed at."""
    ratio = found.get("cpu_ratio")
    return ratio and "{median:.3f} [{low:.3f}, {high:.3f}]".format(**ratio)


def micro_aim(name):
    return "at most 2,300" if name == "ImageToTensor" else ""


def socket_rows(found):
    rows = []
    for name, figures in found.items():
        if not isinstance(figures, dict):
            continue
        stages = figures["stages_us"]
        tensor = stages.get("read", 0.0) + stages.get("parse", 0.0)
        rows.append([f"{name}: socket to tensor, us (read + parse)", tensor, ""])
        copied = figures["copied_bytes_per_request"] / (224 * 224 * 3 * 4)
        rows.append(["  copies of the tensor in user space", copied, "at most 1"])
    return rows


def gate_table(facts, verdicts):
    bad = [v for v in verdicts if not v.passed]
    last = "all checks passed" if not bad else f"{len(bad)} of {len(verdicts)} checks failed"
    table = text_table(checks.HEADER, checks.rows(verdicts))
    return f"{machine.sentence(facts)}\n\n{table}\n\n{last}"
