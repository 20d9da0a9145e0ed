// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/testing/h2_client.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/text.h"

namespace tensord::front {
namespace {

nghttp2_nv Field(const std::string& name, const std::string& value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

std::string Word(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

}  // namespace

std::string GrpcFrame(std::string_view message, char flag) {
  return base::Cat(std::string(1, flag), Word(static_cast<uint32_t>(message.size())), message);
}

std::string RawFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  return base::Cat(Word(static_cast<uint32_t>(payload.size())).substr(1),
                   std::string{static_cast<char>(type), static_cast<char>(flags)}, Word(stream),
                   payload);
}

nghttp2_session_callbacks* H2Client::Callbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks,
      [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
         const uint8_t* value, size_t value_size, uint8_t, void* self) {
        static_cast<H2Client*>(self)
            ->results_[frame->hd.stream_id]
            .headers[std::string(reinterpret_cast<const char*>(name), name_size)] =
            std::string(reinterpret_cast<const char*>(value), value_size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks,
      [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
        static_cast<H2Client*>(self)->results_[id].body.append(reinterpret_cast<const char*>(data),
                                                               size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, int32_t id, uint32_t error_code, void* self) {
        Result& result = static_cast<H2Client*>(self)->results_[id];
        result.closed = true;
        result.error_code = error_code;
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        auto* const client = static_cast<H2Client*>(self);
        if (frame->hd.type == NGHTTP2_HEADERS)
          ++client->results_[frame->hd.stream_id].header_frames;
        if (frame->hd.type == NGHTTP2_GOAWAY) {
          client->goaway_last_ = frame->goaway.last_stream_id;
          client->goaway_error_ = frame->goaway.error_code;
          ++client->goaways_;
        }
        return 0;
      });
  return callbacks;
}

H2Client::H2Client(EdgeFixture* edge, uint32_t initial_window)
    : edge_(edge), socket_(edge->Connect()) {
  nghttp2_session_callbacks* const callbacks = Callbacks();
  nghttp2_option* options = nullptr;
  nghttp2_option_new(&options);
  nghttp2_option_set_no_auto_window_update(options, initial_window < 65536 ? 1 : 0);
  TENSORD_CHECK(nghttp2_session_client_new2(&session_, callbacks, this, options) == 0);
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry setting{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, initial_window};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &setting, 1);
  if (initial_window >= 65536) {
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 1 << 30);
  }
}

H2Client::~H2Client() { nghttp2_session_del(session_); }

int32_t H2Client::Submit(const Fields& head, std::string body, bool open) {
  std::vector<nghttp2_nv> fields;
  for (const auto& [name, value] : head) fields.push_back(Field(name, value));
  bodies_.push_back(std::make_unique<Body>(Body{.bytes = std::move(body), .open = open}));
  nghttp2_data_provider provider{};
  provider.source.ptr = bodies_.back().get();
  provider.read_callback = [](nghttp2_session*, int32_t, uint8_t* buffer, size_t length,
                              uint32_t* flags, nghttp2_data_source* source, void*) -> ssize_t {
    auto* const from = static_cast<Body*>(source->ptr);
    const size_t n = std::min(length, from->bytes.size() - from->sent);
    if (n == 0 && from->open) return NGHTTP2_ERR_DEFERRED;
    std::memcpy(buffer, from->bytes.data() + from->sent, n);
    from->sent += n;
    if (from->sent == from->bytes.size() && !from->open) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(n);
  };
  const bool has_body = open || !bodies_.back()->bytes.empty();
  return nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                has_body ? &provider : nullptr, nullptr);
}

int32_t H2Client::Call(std::string_view method, std::string_view message, const Fields& more) {
  Fields head = {
      {":method", "POST"},    {":scheme", "http"}, {":path", base::Cat("/echo.Echo/", method)},
      {":authority", "test"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  head.insert(head.end(), more.begin(), more.end());
  return Submit(head, GrpcFrame(message));
}

void H2Client::Reset(int32_t stream, uint32_t error_code) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, error_code);
}

void H2Client::SendRaw(std::string_view bytes) { unsent_.append(bytes); }

void H2Client::Run() {
  for (int quiet = 0; quiet < 3;) {
    const uint8_t* data = nullptr;
    while (unsent_.size() < 1 << 20) {
      const ssize_t size = nghttp2_session_mem_send(session_, &data);
      if (size <= 0) break;
      unsent_.append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    }
    const size_t sent = unsent_.empty() ? 0 : socket_.Send(unsent_);
    unsent_.erase(0, sent);
    edge_->Pump();
    const std::string got = socket_.Receive();
    nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(got.data()), got.size());
    quiet = sent == 0 && got.empty() ? quiet + 1 : 0;
  }
}

}  // namespace tensord::front
