// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "base/text.h"
#include "bench/client.h"
#include "bench/peer_words.h"
#include "bench/socket.h"

namespace tensord::bench {
namespace {

// Windows so large that flow control never limits the load.
constexpr int32_t kWindowBytes = (1u << 31) - 1;
constexpr uint32_t kFrameBytes = 1 << 20;
constexpr int kUnavailable = 14;   // The gRPC status.
constexpr size_t kFieldsMax = 48;  // Seven of gRPC's own, the rest are the user's.

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// A grpc-message without its percent-encoding.
std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool code = text[i] == '%' && i + 2 < text.size() && base::HexDigit(text[i + 1]) >= 0 &&
                      base::HexDigit(text[i + 2]) >= 0;
    out += code ? static_cast<char>(base::HexDigit(text[i + 1]) * 16 + base::HexDigit(text[i + 2]))
                : text[i];
    if (code) i += 2;
  }
  return out;
}

nghttp2_nv Field(const std::pair<std::string, std::string>& field) {
  const auto& [name, value] = field;
  // nghttp2 does not write through these, and requests outlive every connection.
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

class GrpcClient final : public Client, Socket::Owner {
 public:
  explicit GrpcClient(ClientPlace& place)
      : loop_(place.loop),
        listener_(place.listener),
        socket_(place.loop, place.address, &place.read_buffer, this) {}
  ~GrpcClient() override { nghttp2_session_del(session_); }

  void Connect() override { socket_.Connect(); }
  bool CanTake() const override {
    return session_ != nullptr && nghttp2_session_check_request_allowed(session_) != 0;
  }

  void Send(Call& call) override {
    const HeaderList& list = call.request->fields;
    std::array<nghttp2_nv, kFieldsMax> fields;
    TENSORD_CHECK(list.size() <= fields.size());
    std::transform(list.begin(), list.end(), fields.begin(), Field);
    nghttp2_data_provider body{};
    body.read_callback = ReadBody;
    call.client = this;
    call.sent_bytes = 0;
    call.http_status = 0;
    call.grpc_status = -1;
    call.message.clear();
    call.stream =
        nghttp2_submit_request(session_, nullptr, fields.data(), list.size(), &body, &call);
    TENSORD_CHECK(call.stream > 0);  // CanTake() says that there are numbers left.
    call.slot = out_.size();
    out_.push_back(&call);
    FlushSoon();
  }

  void Cancel(Call& call) override {
    nghttp2_session_set_stream_user_data(session_, call.stream, nullptr);
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call.stream, NGHTTP2_CANCEL);
    Forget(call);
    FlushSoon();
  }

 private:
  void OnConnected() override {
    nghttp2_session_callbacks* callbacks = nullptr;
    TENSORD_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClose);
    // The original's messages may end with a space, which gRPC's own clients take.
    nghttp2_option* options = nullptr;
    TENSORD_CHECK(nghttp2_option_new(&options) == 0);
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1);
    TENSORD_CHECK(nghttp2_session_client_new2(&session_, callbacks, this, options) == 0);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    const std::array<nghttp2_settings_entry, 3> settings = {
        {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(kWindowBytes)},
         {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kFrameBytes},
         {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
    heard_ = false;
    FlushSoon();
    listener_.OnUp(*this);
  }

  void OnBytes(std::string_view bytes) override {
    now_ns_ = NowNanoseconds(loop_);
    if (!std::exchange(heard_, true)) {
      const std::string words = NotHttp2(bytes);
      if (!words.empty()) return Down(words);
    }
    const ssize_t read = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (read < 0) return Down(base::Cat("HTTP/2: ", nghttp2_strerror(static_cast<int>(read))));
    if (out_.empty() && !CanTake()) return Down("the server said goodbye (GOAWAY)");
    FlushSoon();
  }

  void OnClosed(std::string_view why) override {
    now_ns_ = NowNanoseconds(loop_);
    Down(why);
  }

  void Down(std::string_view why) {
    const bool was_up = session_ != nullptr;
    nghttp2_session_del(std::exchange(session_, nullptr));
    socket_.Close();
    for (Call* call : std::exchange(out_, {})) {
      listener_.OnAnswer(*call, {.code = kConnectionLost, .words = why, .at_ns = now_ns_});
    }
    listener_.OnDown(*this, why, was_up);
  }

  // One write for everything that was sent in an iteration of the loop.
  void FlushSoon() {
    if (std::exchange(flush_wanted_, true)) return;
    loop_.Defer([this] {
      flush_wanted_ = false;
      Flush();
    });
  }

  void Flush() {
    if (session_ == nullptr) return;
    const uint8_t* data = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &data)) > 0;) {
      socket_.out().append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    }
    socket_.Flush();
  }

  void Forget(const Call& call) {
    out_[call.slot] = out_.back();
    out_[call.slot]->slot = call.slot;
    out_.pop_back();
  }

  // Null when the call was cancelled.
  static Call* CallOf(nghttp2_session* session, int32_t stream) {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, stream));
  }

  static ssize_t ReadBody(nghttp2_session* session, int32_t stream, uint8_t* out, size_t size,
                          uint32_t* flags, nghttp2_data_source*, void*) {
    Call* call = CallOf(session, stream);
    if (call == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::string& message = call->request->bytes;
    const size_t piece = std::min(size, message.size() - call->sent_bytes);
    std::memcpy(out, message.data() + call->sent_bytes, piece);
    call->sent_bytes += piece;
    if (call->sent_bytes == message.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(piece);
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t, void*) {
    const std::string_view key = View(name, name_size);
    int Call::*number = nullptr;
    if (key == "grpc-status") number = &Call::grpc_status;
    if (key == ":status") number = &Call::http_status;
    if (number == nullptr && key != "grpc-message") return 0;
    Call* call = CallOf(session, frame->hd.stream_id);
    if (call == nullptr) return 0;
    const std::string_view text = View(value, value_size);
    if (number == nullptr) {
      call->message = Decoded(text);
    } else {
      std::from_chars(text.data(), text.data() + text.size(), call->*number);
    }
    return 0;
  }

  static int OnData(nghttp2_session* session, uint8_t, int32_t stream, const uint8_t* data,
                    size_t size, void*) {
    Call* call = CallOf(session, stream);
    if (call != nullptr && call->body != nullptr) call->body->append(View(data, size));
    return 0;
  }

  static int OnStreamClose(nghttp2_session* session, int32_t stream, uint32_t error,
                           void* user_data) {
    Call* call = CallOf(session, stream);
    if (call == nullptr) return 0;
    auto* self = static_cast<GrpcClient*>(user_data);
    self->Forget(*call);
    Answer answer{.ok = error == 0 && call->grpc_status == 0,
                  .code = call->grpc_status,
                  .words = call->message,
                  .at_ns = self->now_ns_};
    std::string words;
    if (error == NGHTTP2_REFUSED_STREAM) {
      // The server has not looked at it, and says so: as gRPC's clients read that.
      answer.code = kUnavailable;
      answer.words = "the server refused the stream (REFUSED_STREAM)";
    } else if (!answer.ok && call->grpc_status < 0) {
      // No gRPC answer: the stream was reset, or something else than a gRPC server is there.
      answer.code = kConnectionLost;
      words = error != 0 ? base::Cat("stream reset: ", nghttp2_http2_strerror(error))
                         : base::Cat("HTTP status ", call->http_status, " without a grpc-status");
      answer.words = words;
    }
    self->listener_.OnAnswer(*call, answer);
    return 0;
  }

  loop::EventLoop& loop_;
  Listener& listener_;
  nghttp2_session* session_ = nullptr;  // Null while there is no connection.
  bool heard_ = false;                  // A byte has come over this connection.
  bool flush_wanted_ = false;
  int64_t now_ns_ = 0;
  std::vector<Call*> out_;
  Socket socket_;
};

}  // namespace

std::unique_ptr<Client> MakeGrpcClient(ClientPlace& place) {
  return std::make_unique<GrpcClient>(place);
}

int64_t NowNanoseconds(const loop::EventLoop& loop) { return absl::ToUnixNanos(loop.ClockNow()); }

}  // namespace tensord::bench
