// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "tls/material.h"

namespace tensord::tls {

// Which protocols a client may choose by ALPN; one that offers only others is refused.
enum class Alpn : uint8_t {
  kHttp2,          // gRPC.
  kHttp2AndHttp1,  // REST, and a port for both.
};

// A key with its certificate, parsed and found to belong together: TLS 1.2 and 1.3.
// Threads: any; it never changes.
class Credentials {
 public:
  // INVALID_ARGUMENT names the part that is wrong: not PEM, no key, key and certificate of two
  // pairs, an authority that is none.
  static absl::StatusOr<std::shared_ptr<const Credentials>> Create(const Material& material,
                                                                   Alpn alpn);

  // A session of a server, ready for a handshake. Null when memory is short.
  SSL* NewSession() const { return SSL_new(context_.get()); }
  // When the server's certificate becomes invalid.
  absl::Time expires() const { return expires_; }
  // "CN=half.example, serial 4F21, until 2027-01-01": for the log.
  const std::string& description() const { return description_; }

 private:
  struct Freer {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, Freer>;

  Credentials(Context context, absl::Time expires, std::string description)
      : context_(std::move(context)), expires_(expires), description_(std::move(description)) {}

  const Context context_;
  const absl::Time expires_;
  const std::string description_;
};

// What new connections get. Those that exist keep what they have: a rotation drops none.
// Threads: any.
class CredentialsSlot {
 public:
  std::shared_ptr<const Credentials> Get() const {
    base::MutexLock lock(&mu_);
    return credentials_;
  }
  void Set(std::shared_ptr<const Credentials> credentials) {
    base::MutexLock lock(&mu_);
    credentials_.swap(credentials);
  }

 private:
  mutable base::Mutex mu_;
  std::shared_ptr<const Credentials> credentials_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensord::tls
