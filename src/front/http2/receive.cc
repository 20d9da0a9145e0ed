// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "front/grpc.h"
#include "front/http2/http2_session.h"
#include "front/inflater.h"

namespace tensord::front {
namespace {

// What a header costs by HTTP/2's own count, besides its text.
constexpr size_t kHeaderOverheadBytes = 32;
constexpr int kPseudoHeaders = 4;
// A smaller message comes with its head, or nearly so. The beginning is where a request names its
// model.
constexpr uint64_t kEarlyBodyBytesMin = 32 * 1024;
constexpr size_t kEarlyBeginBytes = 1024;

bool EndsStream(const nghttp2_frame& frame) {
  return (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

bool IsAck(const nghttp2_frame& frame) { return (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0; }

}  // namespace

Http2Stream* Http2Session::FindStream(int32_t id) const {
  return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session_, id));
}

void Http2Session::OnBytes(std::span<const std::byte> bytes) {
  heard_ = Now();
  size_t at = 0;
  size_t fed = 0;
  while (!dead_ && !cut_) {
    const auto frame = scanner_.Next(bytes, &at);
    if (!frame.has_value()) break;
    if (IsUsual(*frame)) continue;
    // What was sent before it decides whether it is in its place.
    Feed(bytes.subspan(fed, at - fed));
    fed = at;
    if (!dead_ && !cut_) CheckUnusual(*frame);
  }
  if (!dead_ && !cut_) Feed(bytes.subspan(fed));
  if (dead_ || cut_ || nghttp2_session_want_write(session_) != 0 ||
      nghttp2_session_want_read(session_) == 0) {
    link_->WantTurn();
  }
}

void Http2Session::Feed(std::span<const std::byte> bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (taken >= 0) return;
  dead_ = true;
  cut_ = true;
  last_error_ =
      taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_ENHANCE_YOUR_CALM;
}

// Frames that need no look: a new stream's, and those that the library checks well itself.
bool Http2Session::IsUsual(const FrameScanner::Frame& frame) {
  const bool ends = (frame.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.type) {
    case NGHTTP2_HEADERS:
      if (frame.stream <= newest_) return false;
      newest_ = frame.stream;
      receiving_ = ends ? 0 : frame.stream;
      return true;
    case NGHTTP2_DATA:
      if (frame.stream != receiving_) return false;
      if (ends) receiving_ = 0;
      return true;
    case NGHTTP2_RST_STREAM:
      if (frame.stream == receiving_) receiving_ = 0;
      return true;
    case NGHTTP2_SETTINGS:
    case NGHTTP2_PUSH_PROMISE:
    case NGHTTP2_PING:
    case NGHTTP2_GOAWAY:
    case NGHTTP2_WINDOW_UPDATE:
    case NGHTTP2_CONTINUATION:
      return true;
    default:
      return false;  // PRIORITY, and what is unknown.
  }
}

void Http2Session::CheckUnusual(const FrameScanner::Frame& frame) {
  if (frame.type != NGHTTP2_HEADERS && frame.type != NGHTTP2_DATA) {
    const bool faulty =
        frame.type == NGHTTP2_PRIORITY && (frame.stream == 0 || frame.stream == frame.parent);
    return faulty ? Cut(NGHTTP2_PROTOCOL_ERROR) : CountIdleFrame();
  }
  if (FindStream(frame.stream) != nullptr) return;
  switch (closed_.Find(frame.stream)) {
    case ClosedStreams::Kind::kByClient:
      return Cut(NGHTTP2_STREAM_CLOSED);
    case ClosedStreams::Kind::kUnknown:
      // Never begun, and by the rules it cannot begin any more. (While draining, streams are begun
      // that this session never hears of.)
      if (frame.type == NGHTTP2_HEADERS && !draining_) Cut(NGHTTP2_PROTOCOL_ERROR);
      return;
    case ClosedStreams::Kind::kByServer:
    case ClosedStreams::Kind::kForgotten:
      return;
  }
}

// A client that ends its side can open no window any more: HTTP/2 knows no half-closed connection.
void Http2Session::OnEndOfInput() { link_->Abort(); }

void Http2Session::OnBeginHeaders(const nghttp2_frame& frame) {
  header_bytes_ = 0;
  in_headers_ = true;
  headers_since_ = Now();
  if (frame.headers.cat != NGHTTP2_HCAT_REQUEST) return;
  const int32_t id = frame.hd.stream_id;
  // The library counts those that are open. One that the client has cancelled is none any more, but
  // its memory goes only when the service lets go of it: of those there may be as many again.
  if (*live_ >= 2 * size_t{edge().http2.streams_max}) {
    closed_.Add(id, /*by_server=*/true);
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    return;
  }
  idle_frames_.Give(1);
  auto stream = std::make_shared<Http2Stream>(edge(), this, id, live_);
  RequestHead* const head = stream->mutable_head();
  head->protocol = Protocol::kHttp2;
  head->peer = link_->peer();
  head->grpc_port = edge().grpc;
  head->door = edge().door;
  head->peer_names = link_->peer_names();
  stream->place = streams_.size();
  nghttp2_session_set_stream_user_data(session_, id, stream.get());
  streams_.push_back(std::move(stream));
}

int Http2Session::OnHeader(const nghttp2_frame& frame, std::string_view name,
                           std::string_view value) {
  header_bytes_ += name.size() + value.size() + kHeaderOverheadBytes;
  // A few bytes can stand for much (HPACK): what goes on like this only burns time.
  if (header_bytes_ > limits::kHeaderBytesAbuse) return NGHTTP2_ERR_CALLBACK_FAILURE;
  Http2Stream* const stream = FindStream(frame.hd.stream_id);
  if (stream == nullptr || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (header_bytes_ > limits::kHeaderBytesMax ||
      ++stream->header_count > limits::kHeadersMax + kPseudoHeaders) {
    stream->refuse_head = 431;
  } else if (name.starts_with(':')) {
    SetPseudoHeader(stream, name, value);
  } else {
    if (!stream->AddHeader(name, value)) stream->refuse_head = 429;
  }
  return 0;
}

void Http2Session::SetPseudoHeader(Http2Stream* stream, std::string_view name,
                                   std::string_view value) {
  RequestHead* const head = stream->mutable_head();
  if (name == ":path") {
    if (value.size() > limits::kTargetBytesMax) {
      stream->refuse_head = 414;
    } else {
      head->target = value;
    }
  } else if (name == ":method") {
    head->method = value;
  } else if (name == ":authority") {
    if (!stream->AddHeader("host", value)) stream->refuse_head = 429;
  }
}

void Http2Session::OnFrame(const nghttp2_frame& frame) {
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      return OnHeadersFrame(frame);
    case NGHTTP2_DATA:
      if (EndsStream(frame)) {
        if (Http2Stream* stream = FindStream(frame.hd.stream_id)) EndBody(stream);
      } else if (frame.hd.length <= frame.data.padlen) {
        CountIdleFrame();
      }
      return;
    case NGHTTP2_PING:
      return OnPing(frame);
    case NGHTTP2_SETTINGS:
      if (!IsAck(frame)) CountIdleFrame();
      return;
    case NGHTTP2_RST_STREAM:
      if (Http2Stream* stream = FindStream(frame.hd.stream_id)) stream->reset_by_client = true;
      return CountReset();
    case NGHTTP2_WINDOW_UPDATE:
      if (!window_updates_.Take(Now())) Cut(NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    default:
      return;
  }
}

void Http2Session::OnHeadersFrame(const nghttp2_frame& frame) {
  in_headers_ = false;
  Http2Stream* const stream = FindStream(frame.hd.stream_id);
  if (stream == nullptr) return;
  // Trailers of a request say nothing that a unary call needs.
  const std::shared_ptr<Http2Stream> keep = stream->self();
  if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) EndHead(stream);
  if (EndsStream(frame)) EndBody(stream);
}

void Http2Session::OnPing(const nghttp2_frame& frame) {
  if (!IsAck(frame)) return CountIdleFrame();
  if (frame.ping.opaque_data[0] == kKeepalivePing[0]) {
    pinged_ = absl::InfinitePast();
    return;
  }
  // A drain's: the client has seen the first GOAWAY by now.
  if (draining_ && !final_goaway_) SendFinalGoaway();
}

void Http2Session::EndHead(Http2Stream* stream) {
  stream->head_done = true;
  if (stream->refuse_head != 0) return RefuseHead(stream);
  const RequestHead& head = stream->head();
  stream->grpc = IsGrpc(head);
  if (const auto text = head.Find("content-length"); text.has_value() && !stream->grpc) {
    uint64_t bytes = 0;
    std::from_chars(text->data(), text->data() + text->size(), bytes);
    stream->body_bytes = bytes;
    if (bytes > edge().body_bytes_max) {
      return Refuse(stream, {.http_status = 413,
                             .code = absl::StatusCode::kResourceExhausted,
                             .why = base::Cat("the request's body has ", bytes,
                                              " bytes; the limit is ", edge().body_bytes_max)});
    }
  }
  edge().service->OnHead(*stream);
  if (stream->answered() || head.Find("expect").value_or("") != "100-continue") return;
  const std::string_view name = ":status";
  const std::string_view value = "100";
  nghttp2_nv field{reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                   reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(),
                   value.size(), NGHTTP2_NV_FLAG_NONE};
  nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream->id, nullptr, &field, 1, nullptr);
}

void Http2Session::RefuseHead(Http2Stream* stream) {
  if (stream->refuse_head == 429) return Refuse(stream, OutOfMemoryRefusal());
  std::string why =
      stream->refuse_head == 414
          ? base::Cat("the request target is longer than the limit of ", limits::kTargetBytesMax,
                      " bytes")
          : base::Cat("the request has more headers than the limit of ", limits::kHeadersMax,
                      " fields and ", limits::kHeaderBytesMax, " bytes");
  Refuse(stream, {.http_status = stream->refuse_head,
                  .code = absl::StatusCode::kResourceExhausted,
                  .why = std::move(why)});
}

void Http2Session::OnData(int32_t id, std::span<const std::byte> bytes) {
  // The connection's window only paces; memory is bounded by the budget and the streams' windows.
  nghttp2_session_consume_connection(session_, bytes.size());
  Http2Stream* const stream = FindStream(id);
  if (stream == nullptr || stream->answered()) return;
  stream->progress = Now();
  if (stream->streaming()) return OnStreamData(stream, bytes);
  if (!LearnBodySize(stream, bytes)) return;
  BodyBuffer* const body = stream->body_buffer();
  const uint64_t size = body->size() + bytes.size();
  if (stream->grpc && size > stream->body_bytes.value_or(size)) {
    return Refuse(stream, {.http_status = 400,
                           .code = absl::StatusCode::kInternal,
                           .why = "more than one message in a unary call"});
  }
  if (!stream->grpc && size > edge().body_bytes_max) {
    return Refuse(stream, {.http_status = 413,
                           .code = absl::StatusCode::kResourceExhausted,
                           .why = base::Cat("the request's body has more than ",
                                            edge().body_bytes_max, " bytes, the limit")});
  }
  if (!TellBegin(stream, bytes)) return;
  if (!body->Append(bytes, stream->body_bytes.value_or(0))) {
    return Refuse(stream, OutOfMemoryRefusal());
  }
  OpenWindow(stream);
}

// Lets the service refuse a large call by its first bytes, before they are put anywhere. False when
// it did.
bool Http2Session::TellBegin(Http2Stream* stream, std::span<const std::byte> bytes) {
  const std::span<const std::byte> have = stream->body();
  if (stream->begin_told || !stream->grpc || stream->body_bytes.value_or(0) < kEarlyBodyBytesMin ||
      have.size() + bytes.size() < kEarlyBeginBytes) {
    return true;
  }
  stream->begin_told = true;
  std::vector<std::byte> begin(have.begin(), have.end());
  const std::span<const std::byte> more = bytes.first(kEarlyBeginBytes - have.size());
  begin.insert(begin.end(), more.begin(), more.end());
  if (begin[0] != std::byte{0}) return true;  // Compressed.
  const std::shared_ptr<Http2Stream> keep = stream->self();
  edge().service->OnBodyBegin(*stream, begin, *stream->body_bytes);
  return !stream->answered();
}

// Reads a gRPC message's length as soon as it is there. False when the stream was refused for it.
bool Http2Session::LearnBodySize(Http2Stream* stream, std::span<const std::byte> bytes) {
  BodyBuffer* const body = stream->body_buffer();
  if (!stream->grpc || stream->body_bytes.has_value()) return true;
  std::array<std::byte, kGrpcPrefixBytes> prefix;
  const size_t have = body->size();
  const size_t more = std::min(bytes.size(), prefix.size() - have);
  std::ranges::copy(body->bytes(), prefix.begin());
  std::ranges::copy(bytes.first(more), prefix.begin() + static_cast<ptrdiff_t>(have));
  const auto length = GrpcMessageLength(std::span(prefix).first(have + more));
  if (!length.has_value()) return true;
  // In gRPC's words.
  const uint64_t most = std::min(edge().http2.message_bytes_max, edge().body_bytes_max);
  if (*length > most) {
    Refuse(stream,
           {.http_status = 413,
            .code = absl::StatusCode::kResourceExhausted,
            .why = base::Cat("Received message larger than max (", *length, " vs. ", most, ")")});
    return false;
  }
  stream->body_bytes = kGrpcPrefixBytes + uint64_t{*length};
  return true;
}

// Lets the client send all of a body whose size is known: the window is only a permission, and each
// byte is counted when it comes.
void Http2Session::OpenWindow(Http2Stream* stream) {
  if (stream->window_open) return;
  if (stream->grpc && !stream->body_bytes.has_value()) return;
  const uint64_t total = stream->body_bytes.value_or(edge().body_bytes_max + 1);
  const uint64_t left = total - std::min<uint64_t>(total, stream->body().size());
  const uint64_t wanted = std::min(left, uint64_t{NGHTTP2_MAX_WINDOW_SIZE});
  stream->window_open = wanted == left;
  const auto open = static_cast<uint64_t>(
      std::max(0, nghttp2_session_get_stream_local_window_size(session_, stream->id)));
  if (open >= wanted || (wanted < left && open > wanted / 2)) return;
  nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, stream->id,
                               static_cast<int32_t>(wanted - open));
}

void Http2Session::EndBody(Http2Stream* stream) {
  if (std::exchange(stream->body_ended, true) || stream->answered()) return;
  if (stream->streaming()) {
    if (stream->body().empty()) return edge().service->OnMessagesEnd(stream->self());
    return Refuse(stream, {.http_status = 400,
                           .code = absl::StatusCode::kInternal,
                           .why = "the stream ends in the middle of a message"});
  }
  if (!BeginInflate(stream)) stream->Deliver();
}

// False when there is nothing to inflate.
bool Http2Session::BeginInflate(Http2Stream* stream) {
  std::span<const std::byte> packed = stream->body();
  auto format = Inflater::Format::kGzip;
  if (stream->grpc) {
    // A frame that is not whole is left to ReadGrpcMessage, which finds the words for it.
    const auto encoding = FindGrpcEncoding(stream->head());
    if (packed.size() < kGrpcPrefixBytes || packed[0] != std::byte{1}) return false;
    if (packed.size() != stream->body_bytes || !encoding.has_value()) return false;
    if (*encoding == GrpcEncoding::kIdentity) return false;
    if (*encoding == GrpcEncoding::kDeflate) format = Inflater::Format::kZlib;
    packed = packed.subspan(kGrpcPrefixBytes);
  } else {
    const auto named = BodyFormat(stream->head().Find("content-encoding").value_or(""));
    if (packed.empty() || !named.has_value()) return false;
    format = *named;
  }
  stream->inflated = std::make_unique<BodyBuffer>(edge().ForInflated());
  if (stream->grpc) {
    constexpr std::array<std::byte, kGrpcPrefixBytes> kRoomForPrefix{};
    if (!stream->inflated->Append(kRoomForPrefix)) {
      Refuse(stream, OutOfMemoryRefusal());
      return true;
    }
  }
  stream->inflater =
      std::make_unique<Inflater>(format, packed, InflatedBytesMax(*stream), stream->inflated.get());
  inflating_.push_back(stream->self());
  link_->WantTurn();
  return true;
}

// One slice of one stream a turn; the streams take turns too.
void Http2Session::InflateSlice() {
  if (inflating_.empty()) return;
  const std::shared_ptr<Http2Stream> stream = std::move(inflating_.front());
  inflating_.pop_front();
  if (stream->inflater != nullptr) {
    const Inflater::Result result = stream->inflater->Step();
    if (result == Inflater::Result::kMore) {
      inflating_.push_back(stream);
    } else {
      EndInflate(stream.get(), result);
    }
  }
  if (!inflating_.empty()) link_->WantTurn();
}

void Http2Session::EndInflate(Http2Stream* stream, Inflater::Result result) {
  stream->inflater.reset();
  BodyBuffer inflated = std::move(*std::exchange(stream->inflated, nullptr));
  if (TakeInflated(stream, std::move(inflated), result)) stream->Deliver();
}

// False when the stream was refused for what it holds.
bool Http2Session::TakeInflated(Http2Stream* stream, BodyBuffer inflated, Inflater::Result result) {
  BodyBuffer* const body = stream->body_buffer();
  *body = std::move(inflated);
  std::optional<Refusal> refusal;
  if (result == Inflater::Result::kNoMemory) {
    refusal = OutOfMemoryRefusal();
  } else if (result == Inflater::Result::kTooLarge) {
    refusal = Refusal{.http_status = 413,
                      .code = absl::StatusCode::kResourceExhausted,
                      .why = base::Cat("the body inflates to more than the limit of ",
                                       InflatedBytesMax(*stream), " bytes")};
  } else if (result == Inflater::Result::kCorrupt && stream->grpc) {
    refusal = Refusal{.http_status = 400,
                      .code = absl::StatusCode::kInternal,
                      .why = "the compressed message cannot be inflated"};
  }
  if (refusal.has_value()) {
    Refuse(stream, *refusal);
    return false;
  }
  if (result == Inflater::Result::kCorrupt) {
    body->Clear();
    stream->set_undecodable();
  } else if (stream->grpc) {
    const auto length = static_cast<uint32_t>(body->size() - kGrpcPrefixBytes);
    for (size_t i = 1; i < kGrpcPrefixBytes; ++i) {
      body->mutable_bytes()[i] = static_cast<std::byte>(length >> (8 * (kGrpcPrefixBytes - 1 - i)));
    }
  }
  return true;
}

uint64_t Http2Session::InflatedBytesMax(const Http2Stream& stream) const {
  return stream.streaming() ? limits::kStreamMessageBytesMax : edge().inflated_bytes_max;
}

void Http2Session::Refuse(Http2Stream* stream, const Refusal& refusal) {
  edge().service->OnRefused(stream->head(), refusal.http_status, refusal.why);
  stream->Send(RefusalAnswer(stream->head(), refusal, edge().cors));
}

void Http2Session::OnStreamClosed(int32_t id) {
  Http2Stream* const stream = FindStream(id);
  if (stream == nullptr) return;
  nghttp2_session_set_stream_user_data(session_, id, nullptr);
  closed_.Add(id, /*by_server=*/!stream->body_ended && !stream->reset_by_client);
  const std::shared_ptr<Http2Stream> closed = std::move(streams_[stream->place]);
  if (closed->place + 1 != streams_.size()) {
    streams_[closed->place] = std::move(streams_.back());
    streams_[closed->place]->place = closed->place;
  }
  streams_.pop_back();
  if (streams_.empty()) quiet_since_ = Now();
  if (closed->answered() && closed->answer_sent == closed->AnswerBytes()) {
    resets_.Give(limits::kResetsPerAnswer);
  }
  answer_bytes_ -= closed->answer_counted;
  closed->inflater.reset();
  closed->deflater.reset();
  closed->Abandon();
}

// Frames that ask for nothing and cost time. Each request earns one.
void Http2Session::CountIdleFrame() {
  if (!idle_frames_.Take(Now())) Cut(NGHTTP2_ENHANCE_YOUR_CALM);
}

// Streams that were begun in vain, whoever reset them: rapid reset, and its variants that make the
// server do it.
void Http2Session::CountReset() {
  if (!resets_.Take(Now())) Cut(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Http2Session::Cut(uint32_t error_code) {
  if (std::exchange(cut_, true)) return;
  nghttp2_session_terminate_session(session_, error_code);
  link_->WantTurn();
}

}  // namespace tensord::front
