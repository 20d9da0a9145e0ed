// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/http_answer.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"

namespace tensord::bench {
namespace {

constexpr size_t kHeadBytesMax = 256 * 1024;
constexpr size_t kErrorBytesKept = 64 * 1024;

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

bool Number(std::string_view text, int base, uint64_t* value) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

}  // namespace

void HttpAnswer::Reset(bool keep_body) {
  stage_ = Stage::kHead;
  line_.clear();
  left_ = 0;
  status_ = 0;
  keeps_alive_ = true;
  keep_body_ = keep_body;
  body_.clear();
}

HttpAnswer::State HttpAnswer::Feed(std::string_view* bytes) {
  while (!bytes->empty() && stage_ != Stage::kDone && stage_ != Stage::kBad) {
    if (stage_ == Stage::kHead) {
      ReadHead(bytes);
    } else if (stage_ == Stage::kChunkSize || stage_ == Stage::kTrailer) {
      ReadLine(bytes);
    } else {
      ReadBody(bytes);
    }
  }
  if (stage_ == Stage::kBad) return State::kBad;
  return stage_ == Stage::kDone ? State::kDone : State::kMore;
}

void HttpAnswer::ReadHead(std::string_view* bytes) {
  const size_t before = line_.size();
  line_.append(*bytes);
  const size_t end = line_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
  if (end == std::string::npos) {
    *bytes = {};
    constexpr std::string_view kBegin = "HTTP/1.";
    const size_t seen = std::min(kBegin.size(), line_.size());
    const bool fits = kBegin.substr(0, seen) == std::string_view(line_).substr(0, seen);
    if (!fits || line_.size() > kHeadBytesMax) stage_ = Stage::kBad;
    return;
  }
  bytes->remove_prefix(end + 4 - before);
  line_.resize(end + 2);
  const std::string head = std::move(line_);
  line_.clear();
  ReadFields(head);
}

void HttpAnswer::ReadFields(std::string_view head) {
  uint64_t status = 0;
  if (!head.starts_with("HTTP/1.") || head.size() < 12 || !Number(head.substr(9, 3), 10, &status)) {
    stage_ = Stage::kBad;
    return;
  }
  if (status / 100 == 1) return;  // An interim answer: the real one follows.
  status_ = static_cast<int>(status);
  keeps_alive_ = !head.starts_with("HTTP/1.0");
  stage_ = Stage::kUntilEnd;
  for (head.remove_prefix(head.find('\n') + 1); !head.empty();) {
    const std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(line.size() + 1, head.size()));
    const size_t colon = std::min(line.find(':'), line.size() - 1);
    const std::string_view value = Trimmed(line.substr(colon + 1));
    const std::string_view name = line.substr(0, colon);
    if (base::EqualsIgnoringCase(name, "content-length")) {
      const bool ok = Number(value, 10, &left_);
      stage_ = !ok ? Stage::kBad : left_ == 0 ? Stage::kDone : Stage::kBody;
    } else if (base::EqualsIgnoringCase(name, "transfer-encoding") &&
               base::EqualsIgnoringCase(value, "chunked")) {
      stage_ = Stage::kChunkSize;
    } else if (base::EqualsIgnoringCase(name, "connection")) {
      if (base::EqualsIgnoringCase(value, "close")) keeps_alive_ = false;
      if (base::EqualsIgnoringCase(value, "keep-alive")) keeps_alive_ = true;
    }
  }
  if (status_ == 204 || status_ == 304) stage_ = Stage::kDone;
  if (stage_ == Stage::kUntilEnd) keeps_alive_ = false;
}

void HttpAnswer::ReadBody(std::string_view* bytes) {
  const bool bounded = stage_ != Stage::kUntilEnd;
  const size_t piece = bounded ? std::min<uint64_t>(left_, bytes->size()) : bytes->size();
  if (keep_body_ || (status_ != 200 && body_.size() < kErrorBytesKept)) {
    body_.append(bytes->substr(0, piece));
  }
  bytes->remove_prefix(piece);
  if (!bounded) return;
  left_ -= piece;
  if (left_ > 0) return;
  if (stage_ == Stage::kBody) {
    stage_ = Stage::kDone;
  } else {
    stage_ = Stage::kChunkSize;
  }
}

void HttpAnswer::ReadLine(std::string_view* bytes) {
  const size_t end = bytes->find('\n');
  line_.append(bytes->substr(0, end));
  bytes->remove_prefix(std::min(end, bytes->size() - 1) + 1);
  if (line_.size() > kHeadBytesMax) stage_ = Stage::kBad;
  if (end == std::string_view::npos) return;
  const std::string line = std::move(line_);
  line_.clear();
  TakeLine(Trimmed(line));
}

void HttpAnswer::TakeLine(std::string_view line) {
  if (stage_ == Stage::kTrailer) {
    if (line.empty()) stage_ = Stage::kDone;
    return;
  }
  if (line.empty()) return;  // Behind a chunk.
  if (!Number(line.substr(0, line.find(';')), 16, &left_)) {
    stage_ = Stage::kBad;
  } else {
    stage_ = left_ == 0 ? Stage::kTrailer : Stage::kChunk;
  }
}

}  // namespace tensord::bench
