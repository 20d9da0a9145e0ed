# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""./run demo: from training to a version swap under load, in about a minute."""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from local_server import MIB, ROOT, LocalServer, eventually

FOLDER = ROOT / "build/demo"
SHOWN = 5


def headline(words):
    print(f"\n== {words}", flush=True)


def install(version):
    """Puts a complete version where the server looks, by one rename."""
    base = FOLDER / "models/digits"
    base.mkdir(parents=True, exist_ok=True)
    fresh = base / f"tmp_{version}"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(FOLDER / "store" / str(version), fresh)
    fresh.rename(base / str(version))


def version_state(server, version):
    import requests

    url = f"{server.rest}/v1/models/digits"
    document = requests.get(url, timeout=30).json()
    states = {s["version"]: s["state"] for s in document["model_version_status"]}
    return states.get(str(version))


def classify_held_out(server, digits):
    """The held-out digits through both protocols; a few of them as pictures."""
    import pictures
    import traffic

    pixels, labels = digits.held_out, digits.held_out_labels
    clients = [traffic.OverRest(server), traffic.OverGrpc(server)]
    answers = [client.classify(pixels[:SHOWN]) for client in clients]
    captions = [
        [
            f"REST {answers[0][0][i]} {answers[0][1][i]:8.1%}",
            f"gRPC {answers[1][0][i]} {answers[1][1][i]:8.1%}",
            f"it is {labels[i]}",
        ]
        for i in range(SHOWN)
    ]
    pictures.print_row(pixels[:SHOWN], captions)
    print()
    for client in clients:
        share = traffic.accuracy(client, pixels, labels)
        print(f"   accuracy over {client.name}: {share:.1%} of {len(labels)} held-out digits")
        client.close()


def swap_under_load(server, digits, seconds):
    import traffic

    memory = {}
    with traffic.Traffic(server, digits.held_out) as load:
        time.sleep(seconds)
        memory["before"] = server.pss()
        load.begin("during")
        started = time.monotonic()
        install(2)
        peak = 0
        while version_state(server, 2) != "AVAILABLE" or version_state(server, 1) != "END":
            peak = max(peak, server.pss())
            if time.monotonic() - started > 120:
                raise TimeoutError("version 2 did not take over within 120 s")
        took = time.monotonic() - started
        memory["during"] = max(peak, server.pss())
        load.begin("after")
        time.sleep(seconds)
        memory["after"] = server.pss()
    report(load, memory, took)
    return not load.failures


def report(load, memory, took):
    sent = sum(len(phase.seconds) for phase in load.phases)
    print(f"   version 2 took over {took:.1f} s after its files were there")
    print(f"   requests sent: {sent}   failed: {len(load.failures)}\n")
    print(f"   {'swap':<10}{'requests':>10}{'p50 ms':>10}{'p99 ms':>10}{'PSS MiB':>10}")
    for phase in load.phases:
        numbers = f"{phase.quantile(0.5):>10.2f}{phase.quantile(0.99):>10.2f}"
        size = memory[phase.name] / MIB
        print(f"   {phase.name:<10}{len(phase.seconds):>10}{numbers}{size:>10.0f}")
    for words in load.failures[:3]:
        print(f"   {words}")


def prepare():
    import train

    digits = train.load_digits()
    print(f"   {len(digits.known)} digits to learn from, {len(digits.held_out)} held out")
    started = time.monotonic()
    train.make_versions(digits, FOLDER / "store")
    print(f"   two versions trained and exported in {time.monotonic() - started:.0f} s")
    return digits


def main():
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of load before and after")
    options = parser.parse_args()

    headline("Train a classifier of handwritten digits with TensorFlow")
    digits = prepare()
    shutil.rmtree(FOLDER / "models", ignore_errors=True)
    install(1)

    headline("Start tensord serve")
    (FOLDER / "server.log").unlink(missing_ok=True)
    server = LocalServer(FOLDER, model_name="digits", model_base_path=FOLDER / "models/digits")
    print("   " + " ".join(server.command()))
    started = time.monotonic()
    server.start()
    try:
        server.wait_ready()
        print(f"   ready after {time.monotonic() - started:.1f} s; log in {server.log_path}")

        headline("Classify held-out digits with version 1, which learned from few")
        classify_held_out(server, digits)

        headline("Swap version 1 for version 2 under load")
        unharmed = swap_under_load(server, digits, options.seconds)

        headline("The same digits with version 2")
        classify_held_out(server, digits)

        headline("Stop")
        code = server.stop()
        eventually(lambda: not server.left_over(), "no process is left", 10)
        print(f"   exit code {code}, no process left")
    finally:
        server.kill()
    print("\n./run serve keeps serving it." if unharmed else "\nrequests failed: see above")
    return 0 if unharmed and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
