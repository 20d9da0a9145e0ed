// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Keeps what build.sh builds, and nothing here imports, in go.mod.
package main

import (
	_ "github.com/fullstorydev/grpcurl/cmd/grpcurl"
	_ "github.com/grpc-ecosystem/grpc-health-probe"
	_ "github.com/summerwind/h2spec/cmd/h2spec"
	_ "google.golang.org/protobuf/cmd/protoc-gen-go"
)
