// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "front/grpc.h"
#include "front/http2/http2_session.h"

// gRPC calls of more than one message: both sides go on until one of them ends.
namespace tensord::front {
namespace {

// All at once: a stream's messages are small. Leaves room for the prefix.
Inflater::Result InflateMessage(std::span<const std::byte> frame, GrpcEncoding encoding,
                                BodyBuffer* out) {
  if (!out->Append(std::array<std::byte, kGrpcPrefixBytes>{})) return Inflater::Result::kNoMemory;
  Inflater inflater(
      encoding == GrpcEncoding::kDeflate ? Inflater::Format::kZlib : Inflater::Format::kGzip,
      frame.subspan(kGrpcPrefixBytes), limits::kStreamMessageBytesMax, out);
  Inflater::Result result = inflater.Step();
  while (result == Inflater::Result::kMore) result = inflater.Step();
  return result;
}

}  // namespace

void Http2Session::OnStreamData(Http2Stream* stream, std::span<const std::byte> bytes) {
  const std::shared_ptr<Http2Stream> keep = stream->self();
  nghttp2_session_consume_stream(session_, stream->id, bytes.size());
  while (!bytes.empty() && !stream->answered() && !dead_ && !cut_) {
    if (!TakeOfMessage(stream, &bytes)) return;
    if (stream->body_bytes == stream->body().size()) DeliverMessage(stream);
  }
}

// Moves bytes of one message at most into the stream's buffer. False when it was refused for them.
bool Http2Session::TakeOfMessage(Http2Stream* stream, std::span<const std::byte>* bytes) {
  BodyBuffer* const body = stream->body_buffer();
  const uint64_t whole = stream->body_bytes.value_or(kGrpcPrefixBytes);
  const auto take = static_cast<size_t>(std::min<uint64_t>(whole - body->size(), bytes->size()));
  if (!body->Append(bytes->first(take), whole)) {
    Refuse(stream, OutOfMemoryRefusal());
    return false;
  }
  *bytes = bytes->subspan(take);
  const auto length = GrpcMessageLength(body->bytes());
  if (!length.has_value()) return true;
  if (*length > limits::kStreamMessageBytesMax) {
    Refuse(stream, {.http_status = 413,
                    .code = absl::StatusCode::kResourceExhausted,
                    .why = base::Cat("the message has ", *length, " bytes; the limit is ",
                                     limits::kStreamMessageBytesMax)});
    return false;
  }
  stream->body_bytes = kGrpcPrefixBytes + uint64_t{*length};
  return true;
}

void Http2Session::DeliverMessage(Http2Stream* stream) {
  const GrpcEncoding encoding = FindGrpcEncoding(stream->head()).value_or(GrpcEncoding::kIdentity);
  if (stream->body()[0] == std::byte{1} && encoding != GrpcEncoding::kIdentity) {
    BodyBuffer inflated(edge().ForInflated());
    const Inflater::Result result = InflateMessage(stream->body(), encoding, &inflated);
    if (!TakeInflated(stream, std::move(inflated), result)) return;
  }
  stream->body_bytes.reset();
  edge().service->OnMessage(stream->self());
  *stream->body_buffer() = BodyBuffer(edge().budget);
}

void Http2Session::OnWrite(Call* call, std::string message) {
  auto* const stream = static_cast<Http2Stream*>(call);
  if (dead_ || cut_) return;
  if (stream->outgoing_sent == stream->outgoing.size()) {
    stream->outgoing.clear();
    stream->outgoing_sent = 0;
    stream->progress = Now();
  }
  stream->outgoing += GrpcPrefix(static_cast<uint32_t>(message.size()));
  stream->outgoing += message;
  if (stream->outgoing.size() > limits::kStreamAnswerBytesMax ||
      !stream->outgoing_held.GrowTo(stream->outgoing.size())) {
    stream->outgoing.clear();
    stream->outgoing_sent = 0;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_ENHANCE_YOUR_CALM);
  } else if (stream->begun) {
    nghttp2_session_resume_data(session_, stream->id);
  } else {
    BeginAnswerStream(stream);
  }
  link_->WantTurn();
}

void Http2Session::BeginAnswerStream(Http2Stream* stream) {
  stream->begun = true;
  fields_ = {Http2Field(":status", "200"), Http2Field("content-type", "application/grpc")};
  const nghttp2_data_provider provider = Http2AnswerBody(stream);
  nghttp2_submit_response(session_, stream->id, fields_.data(), fields_.size(), &provider);
}

ssize_t Http2Session::OfferMessages(Http2Stream* stream, size_t length, uint32_t* flags) {
  const size_t left = stream->outgoing.size() - stream->outgoing_sent;
  if (left == 0 && !stream->answered()) return NGHTTP2_ERR_DEFERRED;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (left > length || !stream->answered()) return static_cast<ssize_t>(std::min(left, length));
  *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  SubmitTrailers(*stream);
  return static_cast<ssize_t>(left);
}

int Http2Session::SendMessages(Http2Stream* stream, std::string_view frame_head, size_t length) {
  window_updates_.Give(4);
  out_->Append(frame_head);
  out_->Append(std::string_view(stream->outgoing).substr(stream->outgoing_sent, length));
  stream->outgoing_sent += length;
  stream->progress = Now();
  if (stream->outgoing_sent == stream->outgoing.size()) stream->outgoing_held.Clear();
  return out_->bytes() < room_ ? 0 : NGHTTP2_ERR_PAUSE;
}

}  // namespace tensord::front
