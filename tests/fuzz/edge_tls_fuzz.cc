// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// What a client sends to a port with TLS, in two pieces of which the first byte gives the size of
// the first: hellos and their extensions, plain HTTP, noise.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/unique_fd.h"
#include "front/tls_stream.h"
#include "tls/credentials.h"
#include "tls/testing/certificates.h"

namespace tensord {
namespace {

std::shared_ptr<const tls::Credentials> MakeCredentials() {
  signal(SIGPIPE, SIG_IGN);
  const tls::Identity identity = tls::MakeIdentity("server");
  return *tls::Credentials::Create({.key = identity.key,
                                    .certificate = identity.certificate,
                                    .client_ca = identity.certificate,
                                    .verify_client = true},
                                   tls::Alpn::kHttp2AndHttp1);
}

// Reads all there is; false when the connection is over.
bool ReadOn(front::ByteStream* stream) {
  std::array<std::byte, 4096> into{};
  while (true) {
    const front::IoResult result = stream->Read(into);
    TENSORD_CHECK(result.bytes <= into.size());
    if (result.kind == front::IoResult::kWantRead || result.kind == front::IoResult::kWantWrite) {
      return true;
    }
    if (result.kind == front::IoResult::kEnd || result.kind == front::IoResult::kFailed) {
      return false;
    }
  }
}

void Try(size_t first, std::string_view bytes) {
  static const std::shared_ptr<const tls::Credentials> credentials = MakeCredentials();
  int ends[2];
  TENSORD_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const base::UniqueFd client(ends[1]);
  const std::unique_ptr<front::ByteStream> server =
      front::MakeTlsStream(*credentials, base::UniqueFd(ends[0]));
  TENSORD_CHECK(server != nullptr);
  first = std::min(first, bytes.size());
  for (const std::string_view piece : {bytes.substr(0, first), bytes.substr(first)}) {
    if (send(client.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return;
    if (!ReadOn(server.get())) return;
  }
  shutdown(client.get(), SHUT_WR);
  TENSORD_CHECK(!ReadOn(server.get()));
  (void)server->PeerNames();
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  tensord::Try(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
