# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Where things lie."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
MODELS = BUILD / "bench_models"
SCRATCH = BUILD / "bench"
RESULTS = ROOT / "bench/results"
CHARTS = ROOT / "docs/charts"
PYTHON_PEERS = BUILD / "bench_python"  # A virtual environment.
sys.path.insert(0, str(ROOT / "python"))

from local_server import BIN  # noqa: E402

__all__ = ["BIN", "BUILD", "CHARTS", "MODELS", "PYTHON_PEERS", "RESULTS", "ROOT", "SCRATCH"]


def runtime_directory():
    """TensorFlow's libraries."""
    found = sorted((ROOT / ".venv").glob("lib/python*/site-packages/tensorflow"))
    if not found:
        sys.exit("no TensorFlow in .venv: ./run build installs it")
    return found[0]
