// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "front/exchange.h"
#include "front/grpc_encoding.h"

// gRPC on top of an HTTP/2 Exchange. Pure functions.
// Source: github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
namespace tensord::front {

// Flag and length before each message.
inline constexpr size_t kGrpcPrefixBytes = 5;

// What the headers of a call say. Lifetime: views into the RequestHead.
struct GrpcHead {
  std::string_view service;                      // "tensorflow.serving.PredictionService"
  std::string_view method;                       // "Predict"
  absl::Time deadline = absl::InfiniteFuture();  // Monotonic, from the first byte on.
  int previous_attempts = 0;                     // Of the same call, by a retrying client.
};

// The content type is application/grpc, alone or with a suffix such as +proto. All else over HTTP/2
// is plain HTTP.
bool IsGrpc(const RequestHead& head);

// INVALID_ARGUMENT for a bad timeout, UNIMPLEMENTED for a path that names no method and for an
// encoding we do not read. REQUIRES: IsGrpc(head).
absl::StatusOr<GrpcHead> ParseGrpcHead(const RequestHead& head);

// The encoding that a compressed message has; none when we cannot read it.
std::optional<GrpcEncoding> FindGrpcEncoding(const RequestHead& head);

// As headers name it.
std::string_view GrpcEncodingName(GrpcEncoding encoding);

// How to compress the answer: as the request was, else by `fallback`, and only as the client's
// grpc-accept-encoding says it may be.
GrpcEncoding ChooseAnswerEncoding(const RequestHead& head, GrpcEncoding fallback);

// "100m" is 100 ms: at most eight digits and one of H M S m u n. None when malformed.
std::optional<absl::Duration> ParseGrpcTimeout(std::string_view text);

// The message length that a prefix announces; none before its five bytes are there.
std::optional<uint32_t> GrpcMessageLength(std::span<const std::byte> body);

// The one message in Exchange::body(). INTERNAL, as gRPC says it, when there is none, more than
// one, a part of one, or one that claims to be compressed without naming how.
absl::StatusOr<std::span<const std::byte>> ReadGrpcMessage(std::span<const std::byte> body);

// The answer to a unary call: the message when `status` is OK, else trailers alone, with the
// status's words cut at kGrpcMessageBytesMax like the original's. `extra` joins the trailers.
Answer MakeGrpcAnswer(const absl::Status& status, std::string message = {},
                      std::vector<Header> extra = {});

// Flag and length of an uncompressed message.
std::string GrpcPrefix(uint32_t length);

// The end of a stream: its status, without a message.
Answer MakeGrpcEnd(const absl::Status& status);

// A trailer that asks a retrying client to wait that long; a negative one tells it not to retry.
Header GrpcPushback(absl::Duration wait);

}  // namespace tensord::front
