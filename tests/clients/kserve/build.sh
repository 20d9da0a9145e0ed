#!/usr/bin/env bash
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
#
# build.sh OUT: makes OUT/kserve_client, which runs client.py in a virtual environment of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

work=$out/kserve_client_source
stamp=$(cat "$here"/client.py "$here"/requirements.txt | sha256sum)
[ -x "$out/kserve_client" ] && [ "$(cat "$out/.kserve_stamp" 2> /dev/null)" = "$stamp" ] && exit

rm -rf "$work"
mkdir -p "$work"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-deps -r "$here/requirements.txt"
cp "$here/client.py" "$work"
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$work/venv/bin/python" "$work/client.py" > "$out/kserve_client"
chmod +x "$out/kserve_client"
echo "$stamp" > "$out/.kserve_stamp"
