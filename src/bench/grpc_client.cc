// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <nghttp2/nghttp2.h>

#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "bench/client.h"
#include "bench/socket.h"

namespace tensord::bench {
namespace {

// Windows so large that flow control never limits the load.
constexpr int32_t kWindowBytes = (1u << 31) - 1;
constexpr uint32_t kFrameBytes = 1 << 20;

nghttp2_nv Field(std::string_view name, std::string_view value) {
  // nghttp2 does not write through these: it copies, or reads only.
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

class GrpcClient final : public Client {
 public:
  GrpcClient(loop::EventLoop& loop, base::UniqueFd fd, const Target& target)
      : loop_(loop),
        authority_(base::Cat(target.host, ":", target.port)),
        path_(target.path),
        socket_(
            loop, std::move(fd), [this](std::string_view bytes) { OnBytes(bytes); },
            [this] { FailAll("the server closed the connection"); }) {
    const auto size = static_cast<uint32_t>(target.body.size());
    const std::array<char, 5> prefix = {0, static_cast<char>(size >> 24),
                                        static_cast<char>(size >> 16), static_cast<char>(size >> 8),
                                        static_cast<char>(size)};
    frame_.assign(prefix.begin(), prefix.end());
    frame_ += target.body;
    Open();
  }
  ~GrpcClient() override { nghttp2_session_del(session_); }

  void Send(ReplyDone done) override {
    if (!socket_.open()) {
      loop_.Defer([done = std::move(done)]() mutable {
        done({.ok = false, .reason = "the connection is closed", .bytes = 0});
      });
      return;
    }
    const std::array<nghttp2_nv, 7> headers = {Field(":method", "POST"),
                                               Field(":scheme", "http"),
                                               Field(":path", path_),
                                               Field(":authority", authority_),
                                               Field("te", "trailers"),
                                               Field("content-type", "application/grpc"),
                                               Field("user-agent", "tensord-bench")};
    auto stream = std::make_unique<Stream>();
    stream->done = std::move(done);
    nghttp2_data_provider body{};
    body.source.ptr = stream.get();
    body.read_callback = ReadBody;
    const int32_t id =
        nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &body, nullptr);
    TENSORD_CHECK(id > 0);
    streams_[id] = std::move(stream);
    FlushSoon();
  }

 private:
  struct Stream {
    ReplyDone done;
    size_t sent = 0;
    uint64_t bytes = 0;
    std::string grpc_status;
    std::string grpc_message;
  };

  void Open() {
    nghttp2_session_callbacks* callbacks = nullptr;
    TENSORD_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    TENSORD_CHECK(nghttp2_session_client_new(&session_, callbacks, this) == 0);
    nghttp2_session_callbacks_del(callbacks);
    const std::array<nghttp2_settings_entry, 3> settings = {
        {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(kWindowBytes)},
         {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kFrameBytes},
         {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
    FlushSoon();
  }

  // One write for everything that was sent in an iteration of the loop.
  void FlushSoon() {
    if (flush_wanted_) return;
    flush_wanted_ = true;
    loop_.Defer([this] {
      flush_wanted_ = false;
      Flush();
    });
  }

  void Flush() {
    const uint8_t* data = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &data)) > 0;) {
      socket_.out().append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    }
    socket_.Flush();
  }

  void OnBytes(std::string_view bytes) {
    const ssize_t read = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (read < 0) FailAll(nghttp2_strerror(static_cast<int>(read)));
    FlushSoon();
  }

  void FailAll(std::string_view reason) {
    auto streams = std::exchange(streams_, {});
    for (auto& [id, stream] : streams) {
      stream->done({.ok = false, .reason = std::string(reason), .bytes = stream->bytes});
    }
  }

  Stream* Find(int32_t id) {
    const auto at = streams_.find(id);
    return at == streams_.end() ? nullptr : at->second.get();
  }

  static GrpcClient* Self(void* user_data) { return static_cast<GrpcClient*>(user_data); }

  static ssize_t ReadBody(nghttp2_session*, int32_t, uint8_t* out, size_t size, uint32_t* flags,
                          nghttp2_data_source* source, void* user_data) {
    const std::string& frame = Self(user_data)->frame_;
    auto* stream = static_cast<Stream*>(source->ptr);
    const size_t piece = std::min(size, frame.size() - stream->sent);
    std::memcpy(out, frame.data() + stream->sent, piece);
    stream->sent += piece;
    if (stream->sent == frame.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(piece);
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user_data) {
    Stream* stream = Self(user_data)->Find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == "grpc-status") stream->grpc_status = text;
    if (key == "grpc-message") stream->grpc_message = text;
    return 0;
  }

  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t*, size_t size,
                    void* user_data) {
    if (Stream* stream = Self(user_data)->Find(id)) stream->bytes += size;
    return 0;
  }

  static int OnClose(nghttp2_session*, int32_t id, uint32_t error, void* user_data) {
    GrpcClient* self = Self(user_data);
    const auto at = self->streams_.find(id);
    if (at == self->streams_.end()) return 0;
    const std::unique_ptr<Stream> stream = std::move(at->second);
    self->streams_.erase(at);
    Reply reply{
        .ok = error == 0 && stream->grpc_status == "0", .reason = {}, .bytes = stream->bytes};
    if (!reply.ok) {
      reply.reason =
          error != 0 ? base::Cat("stream reset: ", nghttp2_http2_strerror(error))
                     : base::Cat("grpc-status ", stream->grpc_status, ": ", stream->grpc_message);
    }
    stream->done(std::move(reply));
    return 0;
  }

  loop::EventLoop& loop_;
  const std::string authority_;
  const std::string path_;
  std::string frame_;
  nghttp2_session* session_ = nullptr;
  bool flush_wanted_ = false;
  std::unordered_map<int32_t, std::unique_ptr<Stream>> streams_;
  Socket socket_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> ConnectGrpc(loop::EventLoop& loop, const Target& target) {
  ASSIGN_OR_RETURN(base::UniqueFd fd, Socket::Connect(target.host, target.port));
  return std::make_unique<GrpcClient>(loop, std::move(fd), target);
}

}  // namespace tensord::bench
