// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/pack_answer.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/byte_budget.h"

namespace tensord::front {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "gzip;q=0.000" says that gzip is not taken.
bool Refuses(std::string_view parameters) {
  const size_t at = parameters.find("q=");
  if (at == std::string_view::npos) return false;
  return parameters.substr(at + 2).find_first_not_of("0. ") == std::string_view::npos;
}

}  // namespace

std::optional<Deflater::Format> AcceptedFormat(std::string_view accept_encoding) {
  bool gzip = false;
  bool deflate = false;
  while (!accept_encoding.empty()) {
    const size_t end = std::min(accept_encoding.find(','), accept_encoding.size());
    const std::string_view piece = accept_encoding.substr(0, end);
    accept_encoding.remove_prefix(std::min(end + 1, accept_encoding.size()));
    const size_t name_end = std::min(piece.find(';'), piece.size());
    if (Refuses(piece.substr(name_end))) continue;
    const std::string_view name = Trim(piece.substr(0, name_end));
    gzip |= base::EqualsIgnoringCase(name, "gzip");
    deflate |= base::EqualsIgnoringCase(name, "deflate");
  }
  if (gzip) return Deflater::Format::kGzip;
  if (deflate) return Deflater::Format::kZlib;
  return std::nullopt;
}

std::string_view FormatName(Deflater::Format format) {
  return format == Deflater::Format::kGzip ? "gzip" : "deflate";
}

std::optional<std::string> Pack(Deflater::Format format, std::string_view body) {
  base::ByteBudget budget(body.size());  // It never grows past what it replaces.
  Deflater deflater(format, body, &budget);
  Deflater::Result result = deflater.Step();
  while (result == Deflater::Result::kMore) result = deflater.Step();
  if (result != Deflater::Result::kDone) return std::nullopt;
  return deflater.TakeOutput();
}

}  // namespace tensord::front
