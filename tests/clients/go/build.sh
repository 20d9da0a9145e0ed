#!/usr/bin/env bash
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
#
# build.sh OUT: makes OUT/go_client, and OUT/h2spec, the conformance tests for HTTP/2. The messages
# are generated from our own .proto files; modules come through the Go proxy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

stamp=$(cat "$here"/* "$root"/proto/tensord/*.proto | sha256sum)
[ -x "$out/go_client" ] && [ -x "$out/h2spec" ] && [ "$(cat "$out/.go_stamp" 2> /dev/null)" = "$stamp" ] && exit

work=$out/go_client_source
rm -rf "$work"
mkdir -p "$work/pb"
cp "$here"/*.go "$here"/go.mod "$here"/go.sum "$work"
cd "$work"
go build -o "$out/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
protos=(predict.proto model.proto tensor.proto)
options=()
for proto in "${protos[@]}"; do
  options+=("--go_opt=Mtensord/$proto=tensord.example/client/pb")
done
protoc -I "$root/proto" --plugin="protoc-gen-go=$out/protoc-gen-go" --go_out="$work" \
  --go_opt=module=tensord.example/client "${options[@]}" "${protos[@]/#/tensord/}"
go build -o "$out/go_client" .
go build -o "$out/h2spec" github.com/summerwind/h2spec/cmd/h2spec
echo "$stamp" > "$out/.go_stamp"
