// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "front/call.h"
#include "front/deflater.h"
#include "front/grpc_encoding.h"
#include "front/inflater.h"

namespace tensord::front {

// One HTTP/2 stream: a call, and what the session has to remember about it.
//
// Threads: the connection's loop. Lifetime: shared by the session, while the stream is open, the
// service, while it has no answer, and the connection, while the answer's bytes are queued.
class Http2Stream final : public Call {
 public:
  // `live` counts the streams that are alive, open or not.
  Http2Stream(const Edge& edge, AnswerTarget* target, int32_t id, std::shared_ptr<size_t> live)
      : Call(edge, target),
        id(id),
        progress(head().arrived),
        outgoing_held(edge.budget),
        live_(std::move(live)) {
    ++*live_;
  }
  ~Http2Stream() override { --*live_; }

  std::shared_ptr<Http2Stream> self() {
    return std::static_pointer_cast<Http2Stream>(shared_from_this());
  }

  const int32_t id;
  size_t place = 0;     // In the session's list.
  absl::Time progress;  // When a byte of its body last came, or of its answer last left.
  bool grpc = false;
  bool head_done = false;
  bool body_ended = false;
  bool reset_by_client = false;
  bool window_open = false;  // The client may send all that it announced.
  bool begin_told = false;   // The service has seen the first bytes.
  int refuse_head = 0;       // The HTTP status to refuse it with, once its headers are over.
  int header_count = 0;
  std::optional<uint64_t> body_bytes;  // Known from gRPC's prefix or from Content-Length.

  // Of the answer.
  std::array<char, 4> status_text{};
  std::array<char, 24> length_text{};
  size_t answer_sent = 0;     // Bytes of prefix and body.
  size_t answer_counted = 0;  // Towards the connection's limit.

  // Of a stream's answer: framed messages that wait to leave.
  bool begun = false;  // Its head is on its way.
  std::string outgoing;
  size_t outgoing_sent = 0;
  base::BytesHeld outgoing_held;

  GrpcEncoding answer_encoding = GrpcEncoding::kIdentity;
  std::unique_ptr<Deflater> deflater;  // While its message is compressed.

  // While a compressed body is inflated.
  std::unique_ptr<BodyBuffer> inflated;
  std::unique_ptr<Inflater> inflater;

 private:
  const std::shared_ptr<size_t> live_;
};

}  // namespace tensord::front
