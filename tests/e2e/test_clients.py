# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Clients of other languages, and the conformance tests for HTTP/2, against the real server."""

import re
import subprocess
from pathlib import Path

import pytest
from local_server import ROOT
from test_worker_death import settings_for

GO = Path(ROOT) / "build/clients"
CPP = Path(ROOT) / "build/release/tests/clients/tensord_grpc_client"
EXPECTED = ["ok health", "ok predict", "ok failure", "ok deadline", "ok predict again"]


@pytest.fixture(scope="module")
def server(module_servers, models):
    return module_servers.start(
        models={name: models / name for name in ("half", "sleep_ms")},
        settings=settings_for(models, "sleep_ms"),
    )


@pytest.mark.parametrize("program", [CPP, GO / "go_client"], ids=["C++", "Go"])
def test_a_stock_client_predicts_fails_waits_and_asks_for_health(server, program):
    if not program.exists():
        pytest.skip(f"{program} was not built")
    result = subprocess.run(
        [program, server.grpc], check=False, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == EXPECTED


# It sends a HEADERS frame of 20 KB and wants it refused, as if no server announced a larger frame
# size than the smallest; ours is larger.
EXPECTED_FAILURES = ["Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE"]


def test_h2spec_passes_but_for_a_frame_size_that_it_does_not_read(server):
    """All of generic, hpack and RFC 7540, against the health service's path."""
    program = GO / "h2spec"
    if not program.exists():
        pytest.skip(f"{program} was not built")
    command = [program, "-h", "127.0.0.1", "-p", str(server.grpc_port), "-P"]
    command += ["/grpc.health.v1.Health/Check", "-o", "5"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=280)
    print(result.stdout[-6000:])
    counts = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", result.stdout)
    assert counts, result.stdout + result.stderr
    assert int(counts[1]) > 100
    failures = re.findall(
        r"^ +\u00d7 \d+: (.*)$", result.stdout.split("Failures:")[-1], re.MULTILINE
    )
    assert failures == EXPECTED_FAILURES
