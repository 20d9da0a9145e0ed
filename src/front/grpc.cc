// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/grpc.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"

namespace tensord::front {
namespace {

constexpr std::string_view kContentType = "application/grpc";
constexpr std::string_view kAcceptEncoding = "identity,deflate,gzip";
constexpr int kTimeoutDigitsMax = 8;

std::optional<absl::Duration> UnitOf(char letter) {
  switch (letter) {
    case 'H':
      return absl::Hours(1);
    case 'M':
      return absl::Minutes(1);
    case 'S':
      return absl::Seconds(1);
    case 'm':
      return absl::Milliseconds(1);
    case 'u':
      return absl::Microseconds(1);
    case 'n':
      return absl::Nanoseconds(1);
    default:
      return std::nullopt;
  }
}

// Percent-encodes what is not printable ASCII, the percent sign, and a space at either end: HTTP/2
// forbids that one in a field, and strict clients and proxies reset the stream.
std::string EncodeGrpcMessage(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    const bool at_end = i == 0 || i + 1 == text.size();
    if (byte >= 0x20 && byte <= 0x7e && c != '%' && !(c == ' ' && at_end)) {
      out.push_back(c);
    } else {
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

Answer ErrorAnswer(const absl::Status& status, std::vector<Header> extra) {
  Answer answer{.code = status.code(), .trailers_only = true};
  // A client that used an encoding we do not read learns here which ones we do.
  answer.headers = {{"content-type", std::string(kContentType)},
                    {"grpc-accept-encoding", std::string(kAcceptEncoding)}};
  std::string_view words = base::Message(status);
  const bool cut = words.size() > limits::kGrpcMessageBytesMax;
  std::string text = EncodeGrpcMessage(base::ToUtf8(words.substr(0, limits::kGrpcMessageBytesMax)));
  if (cut) text += "...TRUNCATED";
  answer.trailers = std::move(extra);
  answer.trailers.emplace_back("grpc-status", base::Cat(static_cast<int>(status.code())));
  if (!text.empty()) answer.trailers.emplace_back("grpc-message", std::move(text));
  return answer;
}

absl::Status SplitPath(std::string_view path, GrpcHead* out) {
  const size_t slash = path.rfind('/');
  if (path.empty() || path[0] != '/' || slash <= 1 || slash + 1 == path.size()) {
    return absl::UnimplementedError(
        base::Cat("path \"", path.substr(0, 200), "\" is not /package.Service/Method"));
  }
  out->service = path.substr(1, slash - 1);
  out->method = path.substr(slash + 1);
  return absl::OkStatus();
}

}  // namespace

bool IsGrpc(const RequestHead& head) {
  const std::string_view type = head.Find("content-type").value_or("");
  if (head.protocol != Protocol::kHttp2 || !type.starts_with(kContentType)) return false;
  const std::string_view rest = type.substr(kContentType.size());
  return rest.empty() || rest[0] == '+' || rest[0] == ';' || rest[0] == ' ';
}

absl::StatusOr<GrpcHead> ParseGrpcHead(const RequestHead& head) {
  GrpcHead out;
  if (head.method != "POST") {
    return absl::UnimplementedError(
        base::Cat("a gRPC call uses the method POST, not ", std::string_view(head.method)));
  }
  RETURN_IF_ERROR(SplitPath(head.target, &out));
  if (const auto text = head.Find("grpc-timeout")) {
    const auto timeout = ParseGrpcTimeout(*text);
    if (!timeout.has_value()) {
      return absl::InvalidArgumentError(
          base::Cat("grpc-timeout \"", text->substr(0, 40),
                    "\" is malformed: expected 1 to 8 digits and one of H, M, S, m, u, n"));
    }
    out.deadline = head.arrived + *timeout;
  }
  if (!FindGrpcEncoding(head).has_value()) {
    return absl::UnimplementedError(base::Cat("grpc-encoding \"",
                                              head.Find("grpc-encoding").value_or("").substr(0, 40),
                                              "\" is not supported; use one of ", kAcceptEncoding));
  }
  if (const auto text = head.Find("grpc-previous-rpc-attempts")) {
    // Only a hint for metrics and back-off: what is malformed counts as none.
    std::from_chars(text->data(), text->data() + text->size(), out.previous_attempts);
  }
  return out;
}

std::optional<GrpcEncoding> FindGrpcEncoding(const RequestHead& head) {
  const std::string_view name = head.Find("grpc-encoding").value_or("identity");
  for (const auto encoding :
       {GrpcEncoding::kIdentity, GrpcEncoding::kGzip, GrpcEncoding::kDeflate}) {
    if (name == GrpcEncodingName(encoding)) return encoding;
  }
  return std::nullopt;
}

std::string_view GrpcEncodingName(GrpcEncoding encoding) {
  switch (encoding) {
    case GrpcEncoding::kGzip:
      return "gzip";
    case GrpcEncoding::kDeflate:
      return "deflate";
    case GrpcEncoding::kIdentity:
      break;
  }
  return "identity";
}

GrpcEncoding ChooseAnswerEncoding(const RequestHead& head, GrpcEncoding fallback) {
  GrpcEncoding wanted = FindGrpcEncoding(head).value_or(GrpcEncoding::kIdentity);
  if (wanted == GrpcEncoding::kIdentity) wanted = fallback;
  if (wanted == GrpcEncoding::kIdentity) return wanted;
  std::string_view accepted = head.Find("grpc-accept-encoding").value_or("");
  while (!accepted.empty()) {
    std::string_view name = accepted.substr(0, accepted.find(','));
    accepted.remove_prefix(std::min(accepted.size(), name.size() + 1));
    name.remove_prefix(std::min(name.size(), name.find_first_not_of(' ')));
    if (name.substr(0, name.find(' ')) == GrpcEncodingName(wanted)) return wanted;
  }
  return GrpcEncoding::kIdentity;
}

std::optional<absl::Duration> ParseGrpcTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > kTimeoutDigitsMax + 1) return std::nullopt;
  int64_t count = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    count = count * 10 + (c - '0');
  }
  const auto unit = UnitOf(text.back());
  if (!unit.has_value()) return std::nullopt;
  return count * *unit;
}

std::optional<uint32_t> GrpcMessageLength(std::span<const std::byte> body) {
  if (body.size() < kGrpcPrefixBytes) return std::nullopt;
  uint32_t length = 0;
  for (size_t i = 1; i < kGrpcPrefixBytes; ++i) {
    length = length << 8 | std::to_integer<uint32_t>(body[i]);
  }
  return length;
}

absl::StatusOr<std::span<const std::byte>> ReadGrpcMessage(std::span<const std::byte> body) {
  if (body.empty()) return absl::InternalError("the call carries no message; a unary call has one");
  const auto length = GrpcMessageLength(body);
  const size_t rest = body.size() - std::min(body.size(), kGrpcPrefixBytes);
  if (!length.has_value()) {
    return absl::InternalError(base::Cat("the message is cut short: ", body.size(), " of the ",
                                         kGrpcPrefixBytes,
                                         " bytes before it came before the end of the stream"));
  }
  if (rest < *length) {
    return absl::InternalError(base::Cat("the message is cut short: ", rest, " bytes of ", *length,
                                         " came before the end of the stream"));
  }
  if (rest > *length) {
    return absl::InternalError("more than one message in a unary call");
  }
  if (body[0] == std::byte{1}) {
    return absl::InternalError("the message is marked compressed, but grpc-encoding names nothing");
  }
  if (body[0] != std::byte{0}) {
    return absl::InternalError(base::Cat("the message's compressed flag is ",
                                         std::to_integer<int>(body[0]), ", expected 0 or 1"));
  }
  return body.subspan(kGrpcPrefixBytes);
}

std::string GrpcPrefix(uint32_t length) {
  return {'\0', static_cast<char>(length >> 24), static_cast<char>(length >> 16),
          static_cast<char>(length >> 8), static_cast<char>(length)};
}

Answer MakeGrpcEnd(const absl::Status& status) {
  if (!status.ok()) return ErrorAnswer(status, {});
  Answer answer{.trailers_only = true};
  answer.headers.emplace_back("content-type", kContentType);
  answer.trailers.emplace_back("grpc-status", "0");
  return answer;
}

Answer MakeGrpcAnswer(const absl::Status& status, std::string message, std::vector<Header> extra) {
  if (!status.ok()) return ErrorAnswer(status, std::move(extra));
  if (message.size() > std::numeric_limits<uint32_t>::max()) {
    return ErrorAnswer(
        absl::ResourceExhaustedError(base::Cat("the answer has ", message.size(),
                                               " bytes; a gRPC message holds at most 4294967295")),
        std::move(extra));
  }
  Answer answer;
  answer.headers.emplace_back("content-type", kContentType);
  answer.prefix = GrpcPrefix(static_cast<uint32_t>(message.size()));
  answer.body = std::move(message);
  answer.trailers = std::move(extra);
  answer.trailers.emplace_back("grpc-status", "0");
  return answer;
}

Header GrpcPushback(absl::Duration wait) {
  return {"grpc-retry-pushback-ms", base::Cat(absl::ToInt64Milliseconds(wait))};
}

}  // namespace tensord::front
