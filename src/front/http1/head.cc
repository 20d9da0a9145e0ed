// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/http1/head.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"

namespace tensord::front {
namespace {

namespace http = boost::beast::http;
using BeastView = boost::beast::string_view;
using BeastError = boost::beast::error_code;

std::string_view ToStd(BeastView text) { return {text.data(), text.size()}; }

Refusal BadRequest(std::string why) { return {.http_status = 400, .why = std::move(why)}; }

// RFC 9112, 3.2.2: a target may be a whole URL, as proxies are sent; only its path concerns us.
std::string_view WithoutAuthority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!base::EqualsIgnoringCase(target.substr(0, scheme.size()), scheme)) continue;
    const size_t path = target.find_first_of("/?", scheme.size());
    return path == std::string_view::npos ? "/" : target.substr(path);
  }
  return target;
}

// Refuses what Beast would read kindly: folded lines, a space before the colon, control characters.
// Line ends were checked by ScanHead.
std::optional<Refusal> CheckLines(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != 0x7f) continue;
    if (byte == '\t') continue;
    const bool line_end = byte == '\n' || (byte == '\r' && text[i + 1] == '\n');
    if (!line_end) return BadRequest("a control character in the request's head");
    const bool folded =
        byte == '\n' && i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '\t');
    if (folded) return BadRequest("a header line that starts with white space (folded lines)");
  }
  return std::nullopt;
}

// Beast's parser of the request line and fields, and what it found.
class HeadParser final : public http::basic_parser<true> {
 public:
  explicit HeadParser(Call* call) : call_(call) {
    eager(false);
    header_limit(static_cast<uint32_t>(limits::kHeaderBytesMax) + 1);
    // Ours is checked later. (None would be read as zero.)
    body_limit(std::numeric_limits<uint64_t>::max());
  }

  bool http_1_0() const { return version_ == 10; }
  int length_fields() const { return length_fields_; }
  int host_fields() const { return host_fields_; }
  std::string_view length_text() const { return length_text_; }
  int coding_fields() const { return coding_fields_; }
  std::string_view coding() const { return coding_; }
  std::string_view expect() const { return expect_; }
  std::optional<Inflater::Format> packed() const { return packed_; }
  bool out_of_memory() const { return out_of_memory_; }

 private:
  void on_request_impl(http::verb, BeastView method, BeastView target, int version,
                       BeastError&) override {
    RequestHead* const head = call_->mutable_head();
    head->method = ToStd(method);
    head->target = WithoutAuthority(ToStd(target));
    version_ = version;
  }

  void on_field_impl(http::field field, BeastView name, BeastView value, BeastError&) override {
    const std::string_view text = ToStd(value);
    AddLowerCase(ToStd(name), text);
    switch (field) {
      case http::field::content_length:
        ++length_fields_;
        length_text_ = text;
        break;
      case http::field::transfer_encoding:
        ++coding_fields_;
        coding_ = text;
        break;
      case http::field::host:
        ++host_fields_;
        break;
      case http::field::expect:
        expect_ = text;
        break;
      case http::field::content_encoding:
        if (!packed_.has_value()) packed_ = BodyFormat(text);
        break;
      default:
        break;
    }
  }

  void AddLowerCase(std::string_view name, std::string_view value) {
    name_.assign(name);
    std::transform(name_.begin(), name_.end(), name_.begin(), base::ToLower);
    if (!call_->AddHeader(name_, value)) out_of_memory_ = true;
  }

  void on_header_impl(BeastError&) override {}
  // The body is not Beast's business; these never run.
  void on_response_impl(int, BeastView, int, BeastError&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, BeastError&) override {}
  std::size_t on_body_impl(BeastView, BeastError&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, BeastView, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView, BeastError&) override { return 0; }
  void on_finish_impl(BeastError&) override {}

  Call* const call_;
  std::string name_;
  int version_ = 11;
  int length_fields_ = 0;
  int coding_fields_ = 0;
  int host_fields_ = 0;
  std::string_view length_text_;
  std::string_view coding_;
  std::string_view expect_;
  std::optional<Inflater::Format> packed_;
  bool out_of_memory_ = false;
};

std::optional<Refusal> CheckRequestLine(std::string_view text, Call* call) {
  const std::string_view line = text.substr(0, text.find("\r\n"));
  const size_t target = line.find(' ');
  const size_t version = line.rfind(' ');
  if (target == std::string_view::npos || target == 0 || version <= target + 1) {
    return BadRequest("the request line is not METHOD TARGET HTTP/1.1");
  }
  if (version - target - 1 > limits::kTargetBytesMax) {
    call->mutable_head()->method = line.substr(0, std::min<size_t>(target, 32));
    return Refusal{.http_status = 414,
                   .why = base::Cat("the request target has ", version - target - 1,
                                    " bytes; the limit is ", limits::kTargetBytesMax)};
  }
  const std::string_view name = line.substr(version + 1);
  const bool is_http = name.size() == 8 && name.starts_with("HTTP/");
  if (is_http && name != "HTTP/1.1" && name != "HTTP/1.0") {
    return Refusal{.http_status = 505,
                   .why = base::Cat("this port speaks HTTP/1.1 and HTTP/1.0, not ", name)};
  }
  return std::nullopt;
}

// The body's length, from exactly one of two headers.
std::optional<Refusal> FrameBody(const HeadParser& parser, Http1Framing* framing) {
  if (parser.length_fields() > 1 || parser.coding_fields() > 1 ||
      (parser.length_fields() > 0 && parser.coding_fields() > 0)) {
    return BadRequest("more than one Content-Length or Transfer-Encoding header");
  }
  if (parser.coding_fields() == 1) {
    if (parser.http_1_0()) return BadRequest("Transfer-Encoding in an HTTP/1.0 request");
    if (!base::EqualsIgnoringCase(parser.coding(), "chunked")) {
      return Refusal{.http_status = 501,
                     .code = absl::StatusCode::kUnimplemented,
                     .why = "the only transfer encoding understood is chunked"};
    }
    framing->chunked = true;
  }
  if (parser.length_fields() == 1) {
    const std::string_view text = parser.length_text();
    const auto result =
        std::from_chars(text.data(), text.data() + text.size(), framing->content_length);
    const bool all = result.ec == std::errc() && result.ptr == text.data() + text.size();
    if (!all) return BadRequest("Content-Length is not a number of bytes");
  }
  return std::nullopt;
}

std::optional<Refusal> CheckFields(const HeadParser& parser, Http1Framing* framing) {
  // RFC 9112, 3.2: which of two hosts counts is a matter of taste, so neither does.
  if (parser.host_fields() > 1 || (parser.host_fields() == 0 && !parser.http_1_0())) {
    return BadRequest("an HTTP/1.1 request has exactly one Host header");
  }
  if (!parser.expect().empty() && !parser.http_1_0()) {
    if (!base::EqualsIgnoringCase(parser.expect(), "100-continue")) {
      return Refusal{.http_status = 417, .why = "the only expectation understood is 100-continue"};
    }
    framing->expects_continue = true;
  }
  return FrameBody(parser, framing);
}

}  // namespace

HeadScan ScanHead(std::string_view text, size_t scanned) {
  // The last bytes of an earlier look may begin what ends the head.
  size_t at = scanned > 0 ? scanned - 1 : 0;
  while (true) {
    const void* found =
        at < text.size() ? std::memchr(text.data() + at, '\n', text.size() - at) : nullptr;
    if (found == nullptr) return {.kind = HeadScan::kIncomplete};
    const auto line_end = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    if (line_end == 0 || text[line_end - 1] != '\r') return {.kind = HeadScan::kBad};
    if (line_end >= 3 && text.substr(line_end - 3, 2) == "\r\n") {
      return {.kind = HeadScan::kComplete, .bytes = line_end + 1};
    }
    at = line_end + 1;
  }
}

std::variant<Http1Framing, Refusal> ParseHead(std::string_view text, Call* call) {
  if (auto refusal = CheckRequestLine(text, call)) return *std::move(refusal);
  if (auto refusal = CheckLines(text)) return *std::move(refusal);
  const auto lines = std::count(text.begin(), text.end(), '\n') - 2;
  if (lines > limits::kHeadersMax) {
    return Refusal{.http_status = 431,
                   .code = absl::StatusCode::kResourceExhausted,
                   .why = base::Cat("the request has ", lines, " headers; the limit is ",
                                    limits::kHeadersMax)};
  }
  HeadParser parser(call);
  BeastError error;
  try {
    parser.put(boost::asio::const_buffer(text.data(), text.size()), error);
  } catch (const std::exception&) {
    return BadRequest("the request's head cannot be parsed");
  }
  if (error || !parser.is_header_done()) {
    return BadRequest(base::Cat("the request's head is malformed: ",
                                error ? std::string_view(error.message()) : "it ends too early"));
  }
  if (parser.out_of_memory()) return OutOfMemoryRefusal();
  Http1Framing framing{
      .keep_alive = parser.keep_alive(), .http_1_0 = parser.http_1_0(), .packed = parser.packed()};
  if (auto refusal = CheckFields(parser, &framing)) return *std::move(refusal);
  return framing;
}

}  // namespace tensord::front
