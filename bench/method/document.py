# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What of a run is checked in: a summary, the tables of docs/performance.md, README's. Pure."""

from method import machine
from method.cases import ENGINE, OURS
from method.table import markdown_table

BEGIN = "<!-- made by ./run bench --full: begin -->"
END = "<!-- made by ./run bench --full: end -->"
# Of the README: cases by their titles, and whom tensord is compared with.
HEADLINES = (
    "identity, 64 bytes: gRPC x 64",
    "identity, 64 bytes: REST x 64",
    "MLP 64-128-64-10: gRPC x 64",
    "MLP 64-128-64-10: REST x 64",
    "image, 602 KB: gRPC x 64",
    "MobileNetV2: gRPC x 4",
    "BERT-base, 128 tokens: gRPC x 4",
)
HEADLINE_PEERS = ("gRPC sync", "gRPC queues", "evhttp + RapidJSON", "bentoml", "litserve")
ROW_KEYS = ("requests_per_second", "p50_us", "p99_us", "cpu_us_per_request", "failed")


def rounded(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


def summary(document):
    """The run without its rounds, processes and reasons."""
    cases = {}
    for case in document["cases"]:
        rows = {}
        for name, row in case["contestants"].items():
            rows[name] = {key: rounded(row[key]) for key in ROW_KEYS}
            rows[name]["ratios"] = {
                word: [rounded(ratio[key]) for key in ("median", "low", "high")]
                for word, ratio in row["ratios"].items()
            }
        cases[case["case"]] = {"turns": case["turns"], "contestants": rows}
    kept = ("machine", "seconds", "rounds", "absent", "minutes")
    return {key: document[key] for key in kept if key in document} | {"cases": cases}


def interval(ratio):
    return f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]" if ratio else ""


def case_rows(case):
    contestants = case["contestants"]
    engine = contestants.get(ENGINE, {}).get("cpu_us_per_request")
    rows = []
    for name, row in contestants.items():
        cpu = row["cpu_us_per_request"]
        beyond = "" if None in (engine, cpu) or name == ENGINE else cpu - engine
        ratios = [interval(row["ratios"].get(word)) for word in ("CPU", "rate", "p50")]
        rows.append([name, row["requests_per_second"], row["p50_us"], row["p99_us"], cpu, beyond])
        rows[-1] += ratios
    return rows


def curve_rows(found, at, key, scale):
    columns = list(found["points"].values())
    return [
        [f"{points[0][at]:g}", *(p[key] * scale for p in points)]
        for points in zip(*columns, strict=True)
    ]


def overload_rows(found):
    return [
        [
            f"{points[0]['times']:g}",
            *(f"{p['goodput_per_second']:,.0f} of {p['offered_per_second']:,.0f}" for p in points),
        ]
        for points in zip(*found["points"].values(), strict=True)
    ]


def markdown(document):
    """The tables, in the order of the run."""
    arena = document["rounds"]
    parts = [
        f"Measured on: {machine.sentence(document['machine'])}. "
        f"Rounds of {document['seconds']:g} s; {arena['turns_kept']} turns counted, "
        f"{arena['turns_disturbed']} made again because others used the machine"
        + ("." if arena["strict"] else "; disturbed rounds were counted, too."),
    ]
    header = ["", "req/s", "p50 µs", "p99 µs", "CPU µs", "beyond", "CPU ÷ tensord"]
    header += ["rate ÷ tensord", "p50 ÷ tensord"]
    for case in document["cases"]:
        parts.append(f"**{case['case']}** ({case['turns']} turns)")
        parts.append(markdown_table(header, case_rows(case)))
    for name, reason in document.get("absent", {}).items():
        parts.append(f"{name} was not measured: {reason}.")
    curves = document.get("curves")
    if curves:
        names = list(curves["latency"]["points"])
        parts.append(
            f"**{curves['latency']['workload']}: p99 in ms at a load of so many times the weakest "
            "server's capacity** (open loop, gRPC C++ client)"
        )
        rows = curve_rows(curves["latency"], "share", "p99_us", 1e-3)
        parts.append(markdown_table(["load", *names], rows))
        parts.append("![p99 against load](charts/latency.svg)")
        parts.append(
            "**Answers within 100 ms, of so many asked a second, at a load of so many times the "
            "server's own capacity** (open loop, as it was found in a closed one)"
        )
        rows = overload_rows(curves["overload"])
        parts.append(markdown_table(["times capacity", *names], rows))
        parts.append("![goodput against overload](charts/overload.svg)")
    return "\n\n".join(parts)


def headline_row(case):
    """None for a case that was not measured."""
    found = case["contestants"]
    if OURS not in found:
        return None
    ours = found[OURS]
    row = [case["case"], ours["requests_per_second"], ours["cpu_us_per_request"]]
    for peer in HEADLINE_PEERS:
        ratio = found.get(peer, {}).get("ratios", {}).get("CPU")
        row.append(f"{ratio['median']:.1f}" if ratio else "")
    return row


def headline(document):
    """The README's part: CPU a request beside others', and the charts."""
    by_title = {case["case"]: case for case in document["cases"]}
    rows = [headline_row(by_title[title]) for title in HEADLINES if title in by_title]
    parts = [
        f"Measured on: {machine.sentence(document['machine'])}, shared by client and servers.",
        markdown_table(
            ["", "req/s", "CPU µs a request", *(f"{peer}: CPU x" for peer in HEADLINE_PEERS)],
            [row for row in rows if row],
        ),
    ]
    if document.get("curves"):
        parts.append("![p99 against load](docs/charts/latency.svg)")
        parts.append("![goodput against overload](docs/charts/overload.svg)")
    return "\n\n".join(parts)


def with_part(text, part):
    """The page with what is between its marks replaced."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no part between '{BEGIN}' and '{END}'")
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{after}"
