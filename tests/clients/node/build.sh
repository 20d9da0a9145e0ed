#!/usr/bin/env bash
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
#
# build.sh OUT: makes OUT/node_client, a program that runs client.js with its packages beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

work=$out/node_client_source
stamp=$(cat "$here"/*.js* | sha256sum)
[ -x "$out/node_client" ] && [ "$(cat "$out/.node_stamp" 2> /dev/null)" = "$stamp" ] && exit

rm -rf "$work"
mkdir -p "$work"
cp "$here"/client.js "$here"/package*.json "$work"
cd "$work"
npm ci --ignore-scripts --no-audit --no-fund
printf '#!/bin/sh\nexec node "%s" "$@" "%s"\n' "$work/client.js" "$root/proto" > "$out/node_client"
chmod +x "$out/node_client"
echo "$stamp" > "$out/.node_stamp"
