#!/usr/bin/env python3
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny SavedModels that the tests and benchmarks serve, as OUT/MODEL/VERSION.

What was made is kept and made again only when one of these scripts or the TensorFlow changes.

  make_models.py --out build/test_models             all of them
  make_models.py --out build/test_models --big 500   also big_500: 500 MB of variables
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
OP_LIBRARY = "libtensord_probe_op.so"


def key_of(paths):
    """A hash over what decides the result."""
    digest = hashlib.sha256(metadata.version("tensorflow-cpu").encode())
    for path in sorted(paths):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def build_op_library(out):
    """The test-only op library, against the headers of the TensorFlow that is installed."""
    source = HERE / "probe_op.cc"
    library = out / OP_LIBRARY
    stamp = out / ".ops"
    key = key_of([source])
    if library.exists() and stamp.exists() and stamp.read_text() == key:
        return library
    package = Path(metadata.distribution("tensorflow-cpu").locate_file("tensorflow"))
    command = ["ccache"] if shutil.which("ccache") else []
    command += ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-D_GLIBCXX_USE_CXX11_ABI=1"]
    # System headers: their warnings are not ours.
    command += ["-isystem", str(package / "include"), str(source), "-o", f"{library}.new"]
    command += [f"-L{package}", "-l:libtensorflow_framework.so.2"]
    subprocess.run(command, check=True)
    Path(f"{library}.new").rename(library)
    stamp.write_text(key)
    return library


def make(name, maker, out):
    """One model, complete or not there at all."""
    started = time.monotonic()
    fresh = out / f".making_{name}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    maker(fresh)
    shutil.rmtree(out / name, ignore_errors=True)
    fresh.rename(out / name)
    print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)


def make_all(out, only, big):
    key = key_of([*HERE.glob("*.py"), HERE / "probe_op.cc"])
    stamps = out / ".stamps"
    stamps.mkdir(parents=True, exist_ok=True)
    library = build_op_library(out)

    def current(name):
        stamp = stamps / name
        return (out / name).is_dir() and stamp.exists() and stamp.read_text() == key

    from names import MODELS

    wanted = [n for n in MODELS if not only or n in only] + [f"big_{mb}" for mb in big]
    missing = [n for n in wanted if not current(n)]
    if not missing:
        return
    # Only now: TensorFlow takes seconds to start.
    import makers

    for name in missing:
        if name in makers.MAKERS:
            maker = makers.MAKERS[name]
        else:
            size = int(name.removeprefix("big_"))
            maker = lambda path, size=size: makers.big(path, size)  # noqa: E731
        makers.OP_LIBRARY = library
        make(name, maker, out)
        (stamps / name).write_text(key)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], metavar="MODEL")
    parser.add_argument("--big", action="append", default=[], type=int, metavar="MB")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    options.out.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE))
    with (options.out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Two test runs at once make them once.
        make_all(options.out.resolve(), options.only, options.big)


if __name__ == "__main__":
    main()
