// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <nghttp2/nghttp2.h>

#include <array>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "front/http2/frame_scanner.h"
#include "front/http2/stream.h"
#include "front/link.h"
#include "front/refusal.h"
#include "front/session.h"
#include "front/token_bucket.h"

namespace tensord::front {

// libnghttp2 keeps the protocol's state; this keeps the calls, the windows and the limits.
// receive.cc has what comes in, send.cc what goes out, compress.cc what is done to it before,
// streaming.cc both for calls of more than one message, lifetime.cc what time does to a connection,
// callbacks.cc the library's C interface.
//
// Threads: the connection's loop.
class Http2Session final : public Session, public AnswerTarget {
 public:
  explicit Http2Session(Link* link);
  ~Http2Session() override;

  // Session.
  void OnBytes(std::span<const std::byte> bytes) override;
  void OnEndOfInput() override;
  void Turn(OutQueue* out, size_t room) override;
  void OnGone() override;
  void StartDrain() override;
  void OnTick(absl::Time now) override;
  size_t open_calls() const override;
  bool idle() const override { return streams_.empty(); }

  // AnswerTarget.
  void OnAnswer(Call* call) override;
  void OnWrite(Call* call, std::string message) override;

  // For the library's callbacks. Those that give an int give 0 or one of its error codes.
  void OnBeginHeaders(const nghttp2_frame& frame);
  int OnHeader(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  void OnFrame(const nghttp2_frame& frame);
  void OnData(int32_t id, std::span<const std::byte> bytes);
  void OnStreamClosed(int32_t id);
  void OnFrameSent(const nghttp2_frame& frame);
  ssize_t OfferData(Http2Stream* stream, size_t length, uint32_t* flags);
  int SendData(Http2Stream* stream, std::string_view frame_head, size_t length);

 private:
  absl::Time Now() const { return edge().loop->Now(); }
  const Edge& edge() const { return link_->edge(); }
  Http2Stream* FindStream(int32_t id) const;

  // Receiving.
  void Feed(std::span<const std::byte> bytes);
  bool IsUsual(const FrameScanner::Frame& frame);
  void CheckUnusual(const FrameScanner::Frame& frame);
  void OnHeadersFrame(const nghttp2_frame& frame);
  void OnPing(const nghttp2_frame& frame);
  void SetPseudoHeader(Http2Stream* stream, std::string_view name, std::string_view value);
  void EndHead(Http2Stream* stream);
  void RefuseHead(Http2Stream* stream);
  bool LearnBodySize(Http2Stream* stream, std::span<const std::byte> bytes);
  bool TellBegin(Http2Stream* stream, std::span<const std::byte> bytes);
  void OpenWindow(Http2Stream* stream);
  void EndBody(Http2Stream* stream);
  bool BeginInflate(Http2Stream* stream);
  void InflateSlice();
  void EndInflate(Http2Stream* stream, Inflater::Result result);
  bool TakeInflated(Http2Stream* stream, BodyBuffer inflated, Inflater::Result result);
  uint64_t InflatedBytesMax(const Http2Stream& stream) const;
  void OnStreamData(Http2Stream* stream, std::span<const std::byte> bytes);
  bool TakeOfMessage(Http2Stream* stream, std::span<const std::byte>* bytes);
  void DeliverMessage(Http2Stream* stream);
  void Refuse(Http2Stream* stream, const Refusal& refusal);
  void CountIdleFrame();
  void CountReset();
  void Cut(uint32_t error_code);

  // Sending.
  void SubmitSettings();
  void Submit(Http2Stream* stream);
  void CollectHeaders(Http2Stream* stream, bool has_body);
  void SubmitTrailers(const Http2Stream& stream);
  bool BeginDeflate(Http2Stream* stream);
  void DeflateSlice();
  void EndDeflate(Http2Stream* stream, Deflater::Result result);
  void BoundMessage(Http2Stream* stream);
  void BeginAnswerStream(Http2Stream* stream);
  ssize_t OfferMessages(Http2Stream* stream, size_t length, uint32_t* flags);
  int SendMessages(Http2Stream* stream, std::string_view frame_head, size_t length);
  bool BoundAnswer(Http2Stream* stream);
  void WriteLastWords(OutQueue* out);
  void SendFinalGoaway();
  void TickStream(Http2Stream* stream, absl::Time now);
  void TickAge(absl::Time now);
  void TickKeepalive(absl::Time now);

  Link* const link_;
  nghttp2_session* session_ = nullptr;
  std::vector<std::shared_ptr<Http2Stream>> streams_;  // Open ones, in no order.
  const std::shared_ptr<size_t> live_ = std::make_shared<size_t>(0);
  std::deque<std::shared_ptr<Http2Stream>> inflating_;
  std::deque<std::shared_ptr<Http2Stream>> deflating_;
  size_t header_bytes_ = 0;  // Decoded, of the header block under way.
  bool in_headers_ = false;
  absl::Time headers_since_;
  absl::Time quiet_since_;          // When the last stream closed.
  size_t answer_bytes_ = 0;         // Submitted, of open streams.
  std::vector<nghttp2_nv> fields_;  // Used within one call; keeps its memory.

  FrameScanner scanner_;
  ClosedStreams closed_;
  int32_t newest_ = 0;     // The highest stream the client has begun.
  int32_t receiving_ = 0;  // The newest one, while it has a body to come; else 0.

  TokenBucket resets_;
  TokenBucket idle_frames_;
  TokenBucket window_updates_;

  OutQueue* out_ = nullptr;  // Within Turn.
  size_t room_ = 0;

  bool dead_ = false;  // The library has given up: only last words can be sent.
  bool cut_ = false;   // The client abuses the connection.
  uint32_t last_error_ = NGHTTP2_NO_ERROR;
  bool draining_ = false;
  bool final_goaway_ = false;
  absl::Time drain_since_;

  absl::Time heard_;    // When the client's last bytes came.
  absl::Time pinged_;   // Since when a ping of ours is unanswered; the infinite past: none is.
  absl::Time age_end_;  // When the connection is too old.
  bool aged_ = false;   // It drains for that.
};

// What a ping that asks only for a sign of life carries; a drain's carries zeros.
inline constexpr std::array<uint8_t, 8> kKeepalivePing = {'t', 'e', 'n', 's', 'o', 'r', 'd', '?'};

// The library's callbacks and options, made once for the process.
const nghttp2_session_callbacks* Http2Callbacks();
const nghttp2_option* Http2Options();
// A header for the library, which copies neither: both live in the stream, which outlives the
// frame, or for ever.
nghttp2_nv Http2Field(std::string_view name, std::string_view value, uint8_t flags = 0);
// Lets the library ask the stream's session for the answer's bytes.
nghttp2_data_provider Http2AnswerBody(Http2Stream* stream);

}  // namespace tensord::front
