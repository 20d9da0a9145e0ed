// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// The client's side of TLS.
namespace tensord::bench {

// How to reach one server over TLS. Threads: any; it never changes.
class TlsClient {
 public:
  // The server's certificate must be for `host`, and signed by an authority of `ca_file`, or of the
  // system where that is empty. `protocol`: what ALPN asks for, "h2" or "http/1.1".
  // INVALID_ARGUMENT names the file that is wrong.
  static absl::StatusOr<std::shared_ptr<const TlsClient>> Create(std::string host,
                                                                 const std::string& ca_file,
                                                                 std::string_view protocol);
  // Ready for a handshake over the descriptor; null when memory is short.
  SSL* NewSession(int fd) const;

 private:
  struct Freer {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, Freer>;

  TlsClient(std::string host, Context context)
      : host_(std::move(host)), context_(std::move(context)) {}

  const std::string host_;
  const Context context_;
};

// TLS over a non-blocking socket, whose owner sees to it that SIGPIPE ends nothing.
// Lifetime: the descriptor outlives it.
class SecureStream {
 public:
  enum class Result { kDone, kWantRead, kWantWrite, kEnded };

  SecureStream(const TlsClient& client, int fd) : session_(client.NewSession(fd)) {}

  Result Handshake();
  // Some bytes: their number goes to *size.
  Result Read(char* out, size_t size_max, size_t* size);
  Result Write(std::string_view bytes, size_t* size);
  // Why the last call gave kEnded.
  const std::string& why() const { return why_; }

 private:
  struct Freer {
    void operator()(SSL* session) const { SSL_free(session); }
  };

  Result ResultOf(int code);

  const std::unique_ptr<SSL, Freer> session_;
  std::string why_;
};

}  // namespace tensord::bench
