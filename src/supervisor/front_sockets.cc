// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/front_sockets.h"

#include <charconv>
#include <system_error>

#include "base/text.h"

namespace tensord::supervisor {
namespace {

// Takes one number and the separator behind it off the front of *text; a missing separator is fine
// at the very end.
bool TakeNumber(std::string_view* text, char separator, int* value) {
  const auto result = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (result.ec != std::errc() || *value < -1) return false;
  text->remove_prefix(static_cast<size_t>(result.ptr - text->data()));
  if (text->empty()) return separator == ';';
  if (text->front() != separator) return false;
  text->remove_prefix(1);
  return !text->empty();
}

}  // namespace

std::string EncodeFrontSockets(const FrontSockets& sockets) {
  std::string text = sockets.listen_when_loaded ? "+" : "";
  for (const LoopSockets& loop : sockets.loops) {
    if (&loop != &sockets.loops.front()) text += ';';
    text += base::Cat(loop.grpc_fd, ",", loop.rest_fd, ",", loop.unix_fd, ",", loop.admin_fd, ",",
                      loop.admin_unix_fd);
  }
  if (sockets.kept_fd >= 0) text += base::Cat("/", sockets.kept_fd);
  return text;
}

absl::StatusOr<FrontSockets> DecodeFrontSockets(std::string_view text) {
  const std::string_view whole = text;
  const auto refused = [whole] {
    return absl::InvalidArgumentError(
        base::Cat("expected the supervisor's list of sockets, not \"", whole, "\""));
  };
  FrontSockets sockets;
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    std::string_view kept = text.substr(slash + 1);
    if (!TakeNumber(&kept, ';', &sockets.kept_fd) || !kept.empty()) return refused();
    text = text.substr(0, slash);
  }
  if (text.starts_with('+')) {
    sockets.listen_when_loaded = true;
    text.remove_prefix(1);
  }
  do {
    LoopSockets loop;
    if (!TakeNumber(&text, ',', &loop.grpc_fd) || !TakeNumber(&text, ',', &loop.rest_fd) ||
        !TakeNumber(&text, ',', &loop.unix_fd) || !TakeNumber(&text, ',', &loop.admin_fd) ||
        !TakeNumber(&text, ';', &loop.admin_unix_fd)) {
      return refused();
    }
    sockets.loops.push_back(loop);
  } while (!text.empty());
  return sockets;
}

}  // namespace tensord::supervisor
