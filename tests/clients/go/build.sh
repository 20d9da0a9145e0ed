#!/usr/bin/env bash
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
#
# build.sh OUT: makes OUT/go_client, and beside it tools that people have: grpcurl, grpc_health_probe,
# and h2spec, the conformance tests for HTTP/2. The messages are generated from our own .proto files;
# modules come through the Go proxy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

stamp=$(cat "$here"/* "$root"/proto/tensord/*.proto | sha256sum)
programs=("$out"/{go_client,grpcurl,grpc_health_probe,h2spec})
have=$(ls "${programs[@]}" 2> /dev/null | wc -l)
[ "$have" = ${#programs[@]} ] && [ "$(cat "$out/.go_stamp" 2> /dev/null)" = "$stamp" ] && exit

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
go build -o "$out/grpcurl" github.com/fullstorydev/grpcurl/cmd/grpcurl
go build -o "$out/grpc_health_probe" github.com/grpc-ecosystem/grpc-health-probe
echo "$stamp" > "$out/.go_stamp"
