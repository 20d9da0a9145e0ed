#!/usr/bin/env bash
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
#
# build.sh OUT: makes OUT/perf_analyzer, Triton's load generator. It comes in the wheel of its client;
# the package of its own name is empty. It wants CUDA's runtime library also where no GPU is, and
# libb64 (Debian's libb64-0d).
set -eu
python=$(cd "$(dirname "$0")/../../.." && pwd)/.venv/bin/python
mkdir -p "$1"
out=$(cd "$1" && pwd)

readonly WHEELS=(tritonclient==2.46.0 nvidia-cuda-runtime-cu12==12.9.79)
work=$out/perf_analyzer_files
stamp="${WHEELS[*]} 1"
[ -x "$out/perf_analyzer" ] && [ "$(cat "$work/stamp" 2> /dev/null)" = "$stamp" ] && exit

rm -rf "$work"
mkdir -p "$work"
"$python" -m pip download -q --no-deps --only-binary :all: --dest "$work" "${WHEELS[@]}"
cd "$work"
for wheel in ./*.whl; do
  "$python" -m zipfile -e "$wheel" files
done
find files -name perf_analyzer -type f -exec cp {} program \;
find files -name 'libcudart.so.12' -exec cp {} . \;
chmod +x program
rm -rf files ./*.whl
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$work" "$work/program" > "$out/perf_analyzer"
chmod +x "$out/perf_analyzer"
echo "$stamp" > stamp
