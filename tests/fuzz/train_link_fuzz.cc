// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// What a peer sends to an agent of `tensord train`: a byte that says in what pieces, then lines.
// The link gives each line whole and once, or ends. A line that is a message is one again when it
// is written, in one line, and its token with it.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "loop/event_loop.h"
#include "train/codec.h"
#include "train/limits.h"
#include "train/link.h"

namespace tensord::train {
namespace {

loop::EventLoop& TheLoop() {
  static const std::unique_ptr<loop::EventLoop> loop = *loop::EventLoop::Create();
  return *loop;
}

template <typename Message>
void TryMessage(const absl::StatusOr<Message>& message, const std::string& token,
                absl::StatusOr<Message> (*parse)(std::string_view)) {
  TENSORD_CHECK(message.ok() || !base::Message(message.status()).empty());
  if (!message.ok()) return;
  const std::string line = WithToken(ToLine(*message), token);
  TENSORD_CHECK(line.find('\n') == std::string::npos);
  TENSORD_CHECK(TokenOf(line) == token);
  const absl::StatusOr<Message> again = parse(line);
  TENSORD_CHECK(again.ok() && again->index() == message->index());
}

void TryLine(const std::string& line) {
  const std::string token = TokenOf(line);
  TryMessage(ParseReport(line), token, ParseReport);
  TryMessage(ParseCommand(line), token, ParseCommand);
}

void Try(size_t piece, std::string_view input) {
  std::array<int, 2> ends{};
  TENSORD_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  base::UniqueFd peer(ends[0]);
  Link link(base::UniqueFd(ends[1]), &TheLoop(), nullptr);
  std::string heard;
  int ended = 0;
  link.Start(
      [&heard](const std::string& line) {
        TENSORD_CHECK(line.find('\n') == std::string::npos);
        heard += line + "\n";
        TryLine(line);
      },
      [&ended](const std::string& why) {
        TENSORD_CHECK(!why.empty());
        ++ended;
      });
  std::string_view rest = input;
  while (!rest.empty() && ended == 0) {
    const ssize_t sent =
        send(peer.get(), rest.data(), std::min(piece, rest.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
    TENSORD_CHECK(sent > 0);  // The link reads all that is there.
    rest.remove_prefix(static_cast<size_t>(sent));
    TheLoop().RunOnce(absl::InfinitePast());
  }
  const std::string_view lines = input.substr(0, input.rfind('\n') + 1);
  if (ended == 0) {
    TENSORD_CHECK(heard == lines);
    TENSORD_CHECK(input.size() - lines.size() <= limits::kLinkLineBytesMax);
  }
  TENSORD_CHECK(lines.substr(0, heard.size()) == heard);
  peer.Reset();
  TheLoop().RunOnce(absl::InfinitePast());
  TENSORD_CHECK(ended == 1);
}

}  // namespace
}  // namespace tensord::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = data[0] < 128 ? data[0] + 1 : size_t{64} * data[0];
  tensord::train::Try(piece, {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
