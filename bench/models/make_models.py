#!/usr/bin/env python3
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the SavedModels of the benchmark, with random weights, as OUT/MODEL/VERSION, and the
bodies of its larger REST requests as OUT/bodies/*.json.

What was made is kept and made again only when this folder or the TensorFlow changes: MobileNetV2,
ResNet-50 and BERT take a minute and 600 MB.

  make_models.py --out build/bench_models                  all of them
  make_models.py --out build/bench_models --only mobilenet  one
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import sys
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent


def key():
    """A hash over what decides the result."""
    digest = hashlib.sha256(metadata.version("tensorflow-cpu").encode())
    for path in sorted(HERE.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


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


def make_all(out, only):
    from bench_names import BODIES, MODELS, OPTIONAL

    stamps = out / ".stamps"
    stamps.mkdir(parents=True, exist_ok=True)
    now = key()

    def current(name):
        stamp = stamps / name
        return (out / name).is_dir() and stamp.exists() and stamp.read_text() == now

    wanted = [n for n in [*MODELS, *OPTIONAL, BODIES] if n in only] if only else [*MODELS, BODIES]
    missing = [n for n in wanted if not current(n)]
    if not missing:
        return
    import bench_makers  # Only now: TensorFlow takes seconds to start.

    for name in missing:
        make(name, bench_makers.maker_of(name), out)
        (stamps / name).write_text(now)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], metavar="MODEL")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    options.out.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE))
    with (options.out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Two runs at once make them once.
        make_all(options.out.resolve(), options.only)


if __name__ == "__main__":
    main()
