// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "base/limits.h"
#include "front/http2/http2_session.h"

// What time does to a connection and its streams: stalls, age, quiet, drains.
namespace tensord::front {

void Http2Session::StartDrain() {
  if (std::exchange(draining_, true)) return;
  drain_since_ = Now();
  // First "go, but what you have sent is served", then, when the ping shows that the client has
  // read that, the number of the last request that is.
  nghttp2_submit_shutdown_notice(session_);
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  link_->WantTurn();
}

void Http2Session::SendFinalGoaway() {
  final_goaway_ = true;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  link_->WantTurn();
}

void Http2Session::OnTick(absl::Time now) {
  if (dead_ || cut_) return;
  if (in_headers_ && now - headers_since_ > limits::kHeaderWaitMax) {
    return Cut(NGHTTP2_ENHANCE_YOUR_CALM);
  }
  if (draining_ && !final_goaway_ && now - drain_since_ > limits::kDrainPingWait) {
    SendFinalGoaway();
  }
  TickAge(now);
  TickKeepalive(now);
  if (dead_ || cut_) return;
  if (streams_.empty()) {
    if (now - quiet_since_ > edge().http2.idle_max) StartDrain();
    return;
  }
  // A stream that is ended here leaves the list only later, with its frame.
  for (const auto& stream : streams_) TickStream(stream.get(), now);
}

void Http2Session::TickStream(Http2Stream* stream, absl::Time now) {
  const absl::Duration waited = now - stream->progress;
  const bool writes = stream->outgoing_sent < stream->outgoing.size();
  if (stream->answered() || writes) {
    if (waited <= limits::kWriteStallMax) return;
    // The client never opened its window.
    stream->progress = now;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    link_->WantTurn();
  } else if (stream->streaming()) {
    // One that only listens (a health watch) has ended its side and may do so for ever.
    if (stream->body_ended || waited <= limits::kStreamIdleMax) return;
    Refuse(stream, {.http_status = 408,
                    .code = absl::StatusCode::kDeadlineExceeded,
                    .why = "no message came on this stream for too long"});
  } else if (stream->head_done && !stream->body_ended &&
             (waited > limits::kBodyStallMax ||
              now - stream->head().arrived > limits::kBodyWaitMax)) {
    Refuse(stream, {.http_status = 408,
                    .code = absl::StatusCode::kDeadlineExceeded,
                    .why = "the request's body did not arrive in time"});
  }
}

// The operator wants connections to be renewed, so that clients find new servers.
void Http2Session::TickAge(absl::Time now) {
  if (!draining_ && now > age_end_) {
    aged_ = true;
    StartDrain();
  } else if (aged_ && now - drain_since_ > edge().http2.age_grace) {
    Cut(NGHTTP2_NO_ERROR);
  }
}

void Http2Session::TickKeepalive(absl::Time now) {
  const Http2Settings& settings = edge().http2;
  if (pinged_ != absl::InfinitePast()) {
    // Any byte is a sign of life, its answer in particular.
    if (heard_ < pinged_ && now - pinged_ > settings.keepalive_wait) link_->Abort();
    if (heard_ > pinged_) pinged_ = absl::InfinitePast();
    return;
  }
  const bool wanted = settings.keepalive_without_calls || !streams_.empty();
  if (!wanted || now - heard_ < settings.keepalive_every) return;
  pinged_ = now;
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, kKeepalivePing.data());
  link_->WantTurn();
}

}  // namespace tensord::front
