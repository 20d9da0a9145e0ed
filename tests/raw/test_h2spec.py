# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""h2spec, the HTTP/2 conformance tester, where it is installed.

GOBIN=build/tools go install github.com/summerwind/h2spec/cmd/h2spec@latest
"""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT

# It sends 20 KB in one HEADERS frame and expects an error, as if every server announced the
# smallest frame size. Ours is 64 KiB (fewer frames for large tensors), so that frame is in order.
EXPECTED = {"Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE"}


@pytest.fixture(scope="session")
def h2spec():
    found = shutil.which("h2spec") or shutil.which("h2spec", path=ROOT / "build/tools")
    if found is None:
        pytest.skip("h2spec is not installed")
    return found


@pytest.mark.parametrize("arguments", [[], ["--http1", "false"]], ids=["one port", "HTTP/2 only"])
def test_conformance(h2spec, start_echo, arguments):
    echo = start_echo(*arguments)
    command = [h2spec, "-h", "127.0.0.1", "-p", str(echo.port), "-o", "5"]
    output = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False
    ).stdout
    failures = set(re.findall(r"^ +\u00d7 \d+: (.*)$", output.split("Failures:")[-1], re.MULTILINE))
    assert failures == EXPECTED, output.split("Failures:")[-1]
    assert "145 tests, 144 passed" in output
