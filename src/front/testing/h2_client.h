// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "front/testing/edge_fixture.h"

namespace tensord::front {

// A small HTTP/2 client for tests. Not thread-safe.
class H2Client {
 public:
  struct Result {
    std::map<std::string, std::string> headers;  // Trailers too.
    int header_frames = 0;
    std::string body;
    bool closed = false;
    uint32_t error_code = 0;
  };
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // `initial_window`: what the server may send on a stream before the client asks for more.
  explicit H2Client(EdgeFixture* edge, uint32_t initial_window = 1 << 30);
  ~H2Client();
  H2Client(const H2Client&) = delete;
  H2Client& operator=(const H2Client&) = delete;

  // Begins a request; its result fills while Run runs. The body ends the request unless `open`.
  int32_t Submit(const Fields& head, std::string body, bool open = false);
  // A gRPC call with one message.
  int32_t Call(std::string_view method, std::string_view message, const Fields& more = {});
  void Reset(int32_t stream, uint32_t error_code = NGHTTP2_CANCEL);
  // Moves bytes both ways until nothing more happens.
  void Run();
  // Bytes that no library would send, behind what is queued.
  void SendRaw(std::string_view bytes);

  const Result& result(int32_t stream) { return results_[stream]; }
  nghttp2_session* session() { return session_; }
  // Of the last GOAWAY: stream and error code; how many came.
  int32_t goaway_last() const { return goaway_last_; }
  uint32_t goaway_error() const { return goaway_error_; }
  int goaways() const { return goaways_; }
  bool closed() const { return socket_.closed(); }
  RawClient& socket() { return socket_; }

 private:
  struct Body {
    std::string bytes;
    size_t sent = 0;
    bool open = false;
  };
  static nghttp2_session_callbacks* Callbacks();

  EdgeFixture* const edge_;
  RawClient socket_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Result> results_;
  std::vector<std::unique_ptr<Body>> bodies_;
  std::string unsent_;
  int32_t goaway_last_ = -1;
  uint32_t goaway_error_ = 0;
  int goaways_ = 0;
};

// One gRPC message with its five bytes; `flag` 1 says compressed.
std::string GrpcFrame(std::string_view message, char flag = 0);
// One HTTP/2 frame.
std::string RawFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);

}  // namespace tensord::front
