// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "base/limits.h"
#include "front/grpc.h"
#include "front/http2/http2_session.h"

// Compressing gRPC's answers, for the clients that compress their requests too.
namespace tensord::front {
namespace {

// The message that is worth compressing; empty otherwise.
std::string_view MessageOf(const Answer& answer) {
  const bool message = answer.prefix.size() == kGrpcPrefixBytes;
  if (!message || answer.body.size() < limits::kCompressedBytesMin) return {};
  return answer.body;
}

}  // namespace

// False when the answer goes out as it is.
bool Http2Session::BeginDeflate(Http2Stream* stream) {
  if (!stream->grpc) return false;
  const std::string_view message = MessageOf(stream->answer());
  if (message.empty() || message.size() > edge().http2.answer_bytes_max) return false;
  const GrpcEncoding encoding = ChooseAnswerEncoding(stream->head(), edge().http2.answer_encoding);
  if (encoding == GrpcEncoding::kIdentity || !stream->HoldAnswerBytes()) return false;
  stream->answer_encoding = encoding;
  stream->deflater = std::make_unique<Deflater>(
      encoding == GrpcEncoding::kGzip ? Deflater::Format::kGzip : Deflater::Format::kZlib, message,
      edge().budget);
  deflating_.push_back(stream->self());
  return true;
}

// One slice of one stream a turn; the streams take turns too.
void Http2Session::DeflateSlice() {
  if (deflating_.empty()) return;
  const std::shared_ptr<Http2Stream> stream = std::move(deflating_.front());
  deflating_.pop_front();
  if (stream->deflater != nullptr) {
    const Deflater::Result result = stream->deflater->Step();
    if (result == Deflater::Result::kMore) {
      stream->progress = Now();
      deflating_.push_back(stream);
    } else {
      EndDeflate(stream.get(), result);
    }
  }
  if (!deflating_.empty()) link_->WantTurn();
}

void Http2Session::EndDeflate(Http2Stream* stream, Deflater::Result result) {
  const std::unique_ptr<Deflater> deflater = std::move(stream->deflater);
  if (result == Deflater::Result::kDone) {
    stream->CompressAnswer(deflater->TakeOutput());
  } else {
    stream->answer_encoding = GrpcEncoding::kIdentity;
  }
  stream->progress = Now();
  Submit(stream);
}

}  // namespace tensord::front
