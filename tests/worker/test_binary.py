# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What tensord-worker links and exports: nothing that could meet the runtime's own libraries.

python3 tests/worker/test_binary.py PATH_OF_TENSORD_WORKER     (ctest does; pytest works, too)
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# All that the program may need at run time: what the runtime itself needs, too.
LIBRARIES = re.compile(
    r"(libstdc\+\+|libm|libgcc_s|libc|ld-linux-x86-64|libdl|libpthread)\.so\.\d+"
)


def worker():
    return os.environ.get("TENSORD_WORKER", str(ROOT / "build/release/bin/tensord-worker"))


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed():
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-d", worker()))


def test_links_the_systems_libraries_and_no_other():
    assert needed()
    assert [name for name in needed() if not LIBRARIES.fullmatch(name)] == []


def test_exports_no_symbol_of_its_own():
    """What is there are copies of the C and C++ libraries' own objects (their versions say so)."""
    lines = output_of("nm", "-D", "--defined-only", worker()).splitlines()
    symbols = [line.split() for line in lines]
    ours = [
        s for s in symbols if s[1] not in "BV" or not re.search(r"@+(GLIBC|CXXABI|GLIBCXX)_", s[2])
    ]
    assert ours == []


def test_holds_no_protobuf_and_no_grpc():
    names = output_of("nm", "-C", "--defined-only", worker())
    assert "tensord::worker::" in names  # Not stripped, or the next lines would prove nothing.
    for foreign in ("google::protobuf::", "grpc::", "grpc_", "spdlog::", "fmt::"):
        assert not re.search(rf" [TtWw] (?:\S+ )?{re.escape(foreign)}", names), foreign


def test_says_its_version_and_refuses_other_words():
    assert re.fullmatch(r"tensord-worker \d+\.\d+\.\d+\n", output_of(worker(), "--version"))
    refused = subprocess.run(
        [worker(), "--no_such_flag"], check=False, capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "Usage: tensord-worker" in refused.stderr


def test_a_runtime_that_is_not_there_is_named():
    command = [worker(), "--selftest", "--tensorflow_library_dir=/no/such/place"]
    failed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "/no/such/place" in failed.stderr
    assert "tensorflow-cpu 2.21 wheel" in failed.stderr


def main():
    os.environ["TENSORD_WORKER"] = sys.argv[1]
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name}: ok")


if __name__ == "__main__":
    main()
