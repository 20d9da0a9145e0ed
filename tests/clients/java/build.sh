#!/usr/bin/env bash
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
#
# build.sh OUT: makes OUT/java_client. The messages are generated from our own .proto files; packages
# come through Maven.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

stamp=$(cat "$here"/pom.xml "$here"/src/main/java/*.java "$root"/proto/tensord/*.proto | sha256sum)
[ -x "$out/java_client" ] && [ "$(cat "$out/.java_stamp" 2> /dev/null)" = "$stamp" ] && exit

work=$out/java_client_source
rm -rf "$work"
mkdir -p "$work"
cp -r "$here/pom.xml" "$here/src" "$work"
cd "$work"
protoc -I "$root/proto" --java_out=src/main/java \
  tensord/predict.proto tensord/model.proto tensord/tensor.proto tensord/health.proto
mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars
mkdir -p classes
find src -name '*.java' > sources
javac -nowarn -d classes -cp 'jars/*' @sources
printf '#!/bin/sh\nexec java -cp "%s" Client "$@"\n' "$work/classes:$work/jars/*" > "$out/java_client"
chmod +x "$out/java_client"
echo "$stamp" > "$out/.java_stamp"
