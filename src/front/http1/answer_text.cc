// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/http1/answer_text.h"

#include <array>
#include <ctime>
#include <utility>

#include "base/text.h"

namespace tensord::front {
namespace {

std::string_view ReasonOf(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {
      {200, "OK"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [code, reason] : kReasons) {
    if (code == status) return reason;
  }
  return "Unknown";
}

void AppendDate(absl::Time when, std::string* out) {
  // Formatting costs more than a small answer: once a second and thread is enough.
  thread_local time_t shown = 0;
  thread_local std::array<char, 32> text{};
  const time_t now = absl::ToTimeT(when);
  if (now != shown) {
    shown = now;
    tm parts{};
    gmtime_r(&now, &parts);
    strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  }
  out->append(text.data());
}

}  // namespace

std::string Http1AnswerHead(const Answer& answer, const Http1AnswerMode& mode) {
  std::string out;
  out.reserve(256);
  base::AppendPiece(&out, "HTTP/1.1 ");
  base::AppendPiece(&out, answer.status);
  base::AppendPiece(&out, " ");
  base::AppendPiece(&out, ReasonOf(answer.status));
  base::AppendPiece(&out, "\r\n");
  for (const auto& [name, value] : answer.headers) {
    base::AppendPiece(&out, name);
    base::AppendPiece(&out, ": ");
    base::AppendPiece(&out, value);
    base::AppendPiece(&out, "\r\n");
  }
  base::AppendPiece(&out, "date: ");
  AppendDate(mode.date, &out);
  if (answer.status >= 200 && answer.status != 204 && answer.status != 304) {
    base::AppendPiece(&out, "\r\ncontent-length: ");
    base::AppendPiece(&out, answer.prefix.size() + answer.body.size());
  }
  if (mode.close) {
    base::AppendPiece(&out, "\r\nconnection: close");
  } else if (mode.http_1_0) {
    base::AppendPiece(&out, "\r\nconnection: keep-alive");
  }
  base::AppendPiece(&out, "\r\n\r\n");
  return out;
}

}  // namespace tensord::front
