// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"
#include "front/http2/http2_session.h"

// The C interface of libnghttp2: each callback finds its session and says what happened.
namespace tensord::front {
namespace {

Http2Session* SessionOf(void* user_data) { return static_cast<Http2Session*>(user_data); }

std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
  SessionOf(user_data)->OnBeginHeaders(*frame);
  return 0;
}

int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
             const uint8_t* value, size_t value_size, uint8_t, void* user_data) {
  return SessionOf(user_data)->OnHeader(*frame, Text(name, name_size), Text(value, value_size));
}

int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
  SessionOf(user_data)->OnFrame(*frame);
  return 0;
}

int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
           void* user_data) {
  SessionOf(user_data)->OnData(id, std::as_bytes(std::span(data, size)));
  return 0;
}

int OnStreamClosed(nghttp2_session*, int32_t id, uint32_t, void* user_data) {
  SessionOf(user_data)->OnStreamClosed(id);
  return 0;
}

int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
  SessionOf(user_data)->OnFrameSent(*frame);
  return 0;
}

int SendData(nghttp2_session*, nghttp2_frame*, const uint8_t* frame_head, size_t length,
             nghttp2_data_source* source, void* user_data) {
  constexpr size_t kFrameHeadBytes = 9;
  return SessionOf(user_data)->SendData(static_cast<Http2Stream*>(source->ptr),
                                        Text(frame_head, kFrameHeadBytes), length);
}

ssize_t ReadData(nghttp2_session*, int32_t, uint8_t*, size_t length, uint32_t* flags,
                 nghttp2_data_source* source, void* user_data) {
  return SessionOf(user_data)->OfferData(static_cast<Http2Stream*>(source->ptr), length, flags);
}

// Larger frames than the library's 16 KiB where the client takes them.
ssize_t FrameBytes(nghttp2_session*, uint8_t, int32_t, int32_t connection_window,
                   int32_t stream_window, uint32_t frame_bytes_max, void*) {
  const int32_t window = std::min(connection_window, stream_window);
  const auto most =
      static_cast<int32_t>(std::min<size_t>(frame_bytes_max, limits::kSentFrameBytesMax));
  return std::min(window, most);
}

}  // namespace

const nghttp2_session_callbacks* Http2Callbacks() {
  static const nghttp2_session_callbacks* const made = [] {
    nghttp2_session_callbacks* callbacks = nullptr;
    TENSORD_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClosed);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnFrameSent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, SendData);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, FrameBytes);
    return callbacks;
  }();
  return made;
}

nghttp2_data_provider Http2AnswerBody(Http2Stream* stream) {
  nghttp2_data_provider provider{};
  provider.source.ptr = stream;
  provider.read_callback = ReadData;
  return provider;
}

const nghttp2_option* Http2Options() {
  static const nghttp2_option* const made = [] {
    nghttp2_option* options = nullptr;
    TENSORD_CHECK(nghttp2_option_new(&options) == 0);
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);
    nghttp2_option_set_max_continuations(options, limits::kContinuationsMax);
    nghttp2_option_set_max_settings(options, limits::kSettingsPerFrameMax);
    nghttp2_option_set_max_outbound_ack(options, limits::kOutboundAcksMax);
    // Ours (Http2Session::CountReset) strikes first; this one only counts what clients send.
    nghttp2_option_set_stream_reset_rate_limit(options,
                                               2 * static_cast<uint64_t>(limits::kResetsBurst),
                                               2 * static_cast<uint64_t>(limits::kResetsPerSecond));
    return options;
  }();
  return made;
}

}  // namespace tensord::front
