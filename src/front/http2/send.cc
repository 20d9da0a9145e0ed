// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "front/grpc.h"
#include "front/http2/http2_session.h"
#include "front/http2/session.h"

namespace tensord::front {

nghttp2_nv Http2Field(std::string_view name, std::string_view value, uint8_t flags) {
  return {
      reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
      reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
      static_cast<uint8_t>(NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE | flags)};
}

namespace {

// Values that are new with each answer would only push useful ones out of HPACK's table.
uint8_t Indexing(std::string_view name) {
  const bool changing = name == "grpc-message" || name == "content-length";
  return changing ? NGHTTP2_NV_FLAG_NO_INDEX : 0;
}

// So that connections that came together do not all go together: a tenth earlier to a tenth later,
// by the client's address.
absl::Time AgeEnd(const Link& link) {
  const auto percent = static_cast<int>(std::hash<std::string>()(link.peer()) % 21) + 90;
  return link.edge().loop->Now() + link.edge().http2.age_max * percent / 100;
}

}  // namespace

Http2Session::Http2Session(Link* link)
    : link_(link),
      quiet_since_(Now()),
      resets_(limits::kResetsBurst, limits::kResetsPerSecond, Now()),
      idle_frames_(limits::kIdleFramesBurst, limits::kIdleFramesPerSecond, Now()),
      window_updates_(limits::kWindowUpdatesBurst, limits::kWindowUpdatesPerSecond, Now()),
      heard_(Now()),
      pinged_(absl::InfinitePast()),
      age_end_(AgeEnd(*link)) {
  const int rc = nghttp2_session_server_new2(&session_, Http2Callbacks(), this, Http2Options());
  TENSORD_CHECK(rc == 0);  // Out of memory.
  SubmitSettings();
  link_->WantTurn();
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

void Http2Session::SubmitSettings() {
  const std::array<nghttp2_settings_entry, 5> settings{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, edge().http2.streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits::kStreamWindowBytes},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits::kFrameBytesMax},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits::kHeaderBytesMax},
      // The library's tree of priorities costs more than a small call is worth.
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  }};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                        limits::kConnectionWindowBytes);
}

void Http2Session::OnAnswer(Call* call) {
  auto* const stream = static_cast<Http2Stream*>(call);
  if (dead_ || cut_) return;  // Its stream is cancelled together with the connection.
  stream->inflater.reset();
  stream->progress = Now();
  if (stream->begun) {
    nghttp2_session_resume_data(session_, stream->id);
  } else if (!BeginDeflate(stream)) {
    Submit(stream);
  }
  link_->WantTurn();
}

void Http2Session::Submit(Http2Stream* stream) {
  BoundMessage(stream);
  if (!BoundAnswer(stream)) {
    stream->ReplaceAnswer(
        RefusalAnswer(stream->head(),
                      {.http_status = 429,
                       .code = absl::StatusCode::kResourceExhausted,
                       .why = "too many answers wait to be read; read them, or try again later"},
                      edge().cors));
    stream->answer_encoding = GrpcEncoding::kIdentity;
  }
  const bool has_body = stream->AnswerBytes() > 0 && stream->head().method != "HEAD";
  CollectHeaders(stream, has_body);
  const nghttp2_data_provider provider = Http2AnswerBody(stream);
  const bool more =
      has_body || (!stream->answer().trailers.empty() && !stream->answer().trailers_only);
  const int rc = nghttp2_submit_response(session_, stream->id, fields_.data(), fields_.size(),
                                         more ? &provider : nullptr);
  if (rc != 0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
  }
}

// A message larger than the operator allows becomes an error, in gRPC's words.
void Http2Session::BoundMessage(Http2Stream* stream) {
  const uint64_t size = stream->answer().body.size();
  const uint64_t most = edge().http2.answer_bytes_max;
  if (!stream->grpc || size <= most) return;
  stream->ReplaceAnswer(MakeGrpcAnswer(absl::ResourceExhaustedError(
      base::Cat("Sent message larger than max (", size, " vs. ", most, ")"))));
}

// False when the answer would be one too many for a client that does not read, or for the budget.
bool Http2Session::BoundAnswer(Http2Stream* stream) {
  const size_t bytes = stream->AnswerBytes();
  const bool fits =
      answer_bytes_ == 0 || answer_bytes_ + bytes <= limits::kAnswerBytesPerConnectionMax;
  if (!fits || !stream->HoldAnswerBytes()) return false;
  stream->answer_counted = bytes;
  answer_bytes_ += bytes;
  return true;
}

void Http2Session::CollectHeaders(Http2Stream* stream, bool has_body) {
  const Answer& answer = stream->answer();
  fields_.clear();
  const auto status =
      std::to_chars(stream->status_text.begin(), stream->status_text.end(), answer.status);
  fields_.push_back(Http2Field(
      ":status",
      {stream->status_text.data(), static_cast<size_t>(status.ptr - stream->status_text.data())}));
  for (const auto& [name, value] : answer.headers) {
    fields_.push_back(Http2Field(name, value, Indexing(name)));
  }
  if (stream->answer_encoding != GrpcEncoding::kIdentity) {
    fields_.push_back(Http2Field("grpc-encoding", GrpcEncodingName(stream->answer_encoding)));
  }
  if (answer.trailers_only) {
    for (const auto& [name, value] : answer.trailers) {
      fields_.push_back(Http2Field(name, value, Indexing(name)));
    }
  } else if (answer.trailers.empty() && (has_body || stream->head().method == "HEAD")) {
    const auto length = std::to_chars(stream->length_text.begin(), stream->length_text.end(),
                                      stream->AnswerBytes());
    fields_.push_back(Http2Field(
        "content-length",
        {stream->length_text.data(), static_cast<size_t>(length.ptr - stream->length_text.data())},
        NGHTTP2_NV_FLAG_NO_INDEX));
  }
}

void Http2Session::SubmitTrailers(const Http2Stream& stream) {
  fields_.clear();
  for (const auto& [name, value] : stream.answer().trailers) {
    fields_.push_back(Http2Field(name, value, Indexing(name)));
  }
  nghttp2_submit_trailer(session_, stream.id, fields_.data(), fields_.size());
}

// The library asks how much of the body goes into the next frame; the bytes follow in SendData.
ssize_t Http2Session::OfferData(Http2Stream* stream, size_t length, uint32_t* flags) {
  if (stream->begun) return OfferMessages(stream, length, flags);
  const size_t left = stream->AnswerBytes() - stream->answer_sent;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (left > length) return static_cast<ssize_t>(length);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (!stream->answer().trailers.empty()) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    SubmitTrailers(*stream);
  }
  return static_cast<ssize_t>(left);
}

int Http2Session::SendData(Http2Stream* stream, std::string_view frame_head, size_t length) {
  if (stream->begun) return SendMessages(stream, frame_head, length);
  const Answer& answer = stream->answer();
  window_updates_.Give(4);
  out_->Append(frame_head);
  const std::string_view prefix =
      std::string_view(answer.prefix).substr(std::min(stream->answer_sent, answer.prefix.size()));
  const std::string_view first = prefix.substr(0, length);
  out_->Append(first);
  const size_t from = stream->answer_sent + first.size() - answer.prefix.size();
  const std::string_view rest =
      first.size() < length ? std::string_view(answer.body).substr(from, length - first.size())
                            : std::string_view();
  if (!rest.empty()) out_->AppendShared(rest, stream->self());
  stream->answer_sent += length;
  stream->progress = Now();
  return out_->bytes() < room_ ? 0 : NGHTTP2_ERR_PAUSE;
}

void Http2Session::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_RST_STREAM && frame.rst_stream.error_code != NGHTTP2_NO_ERROR) {
    return CountReset();
  }
  const bool answers = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (!answers || (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
  Http2Stream* const stream = FindStream(frame.hd.stream_id);
  if (stream == nullptr) return;
  link_->Leaves(stream->self());
  if (stream->body_ended) return;
  // Answered before the request's end: the client need not send the rest (RFC 9113, 8.1).
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
}

void Http2Session::Turn(OutQueue* out, size_t room) {
  out_ = out;
  room_ = room;
  if (!dead_) InflateSlice();
  if (!dead_) DeflateSlice();
  while (!dead_ && out->bytes() < room) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size == 0) break;
    if (size < 0) {
      dead_ = true;
    } else {
      out->Append({reinterpret_cast<const char*>(data), static_cast<size_t>(size)});
    }
  }
  out_ = nullptr;
  if (dead_) WriteLastWords(out);
  const bool over = dead_ || (nghttp2_session_want_read(session_) == 0 &&
                              nghttp2_session_want_write(session_) == 0);
  if (over || (cut_ && out->bytes() < room)) {
    return link_->CloseWhenWritten(cut_ ? Link::Closing::kAbrupt : Link::Closing::kPolite);
  }
  if (out->bytes() >= room) {
    link_->WantTurn();
  } else if (final_goaway_ && streams_.empty()) {
    link_->CloseWhenWritten(Link::Closing::kPolite);
  }
}

// A GOAWAY by hand, when the library can make none any more.
void Http2Session::WriteLastWords(OutQueue* out) {
  const auto last = static_cast<uint32_t>(nghttp2_session_get_last_proc_stream_id(session_));
  std::string frame("\0\0\x08\x07\0\0\0\0\0", 9);
  for (const uint32_t word : {last, last_error_}) {
    for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(word >> shift));
  }
  out->Append(frame);
}

size_t Http2Session::open_calls() const {
  return static_cast<size_t>(
      std::ranges::count_if(streams_, [](const auto& stream) { return !stream->answered(); }));
}

void Http2Session::OnGone() {
  dead_ = true;
  inflating_.clear();
  deflating_.clear();
  const auto streams = std::move(streams_);
  streams_.clear();
  for (const auto& stream : streams) {
    nghttp2_session_set_stream_user_data(session_, stream->id, nullptr);
    stream->inflater.reset();
    stream->deflater.reset();
  }
  for (const auto& stream : streams) stream->Abandon();
}

std::unique_ptr<Session> MakeHttp2Session(Link* link) {
  return std::make_unique<Http2Session>(link);
}

}  // namespace tensord::front
