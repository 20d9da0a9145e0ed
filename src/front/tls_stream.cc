// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/tls_stream.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <utility>

#include "tls/peer.h"

namespace tensord::front {
namespace {

// A record holds no more; small pieces share one.
constexpr size_t kRecordBytesMax = 16384;

class TlsStream final : public ByteStream {
 public:
  // REQUIRES: the session has its socket.
  TlsStream(SSL* session, base::UniqueFd socket) : socket_(std::move(socket)), session_(session) {}

  int fd() const override { return socket_.get(); }

  IoResult Read(std::span<std::byte> into) override {
    if (plain_ != nullptr) return plain_->Read(into);
    ERR_clear_error();  // What other connections left behind would be taken for ours.
    const int n = SSL_read(session_.get(), into.data(),
                           static_cast<int>(std::min<size_t>(into.size(), INT_MAX)));
    return n > 0 ? IoResult{.bytes = static_cast<size_t>(n)} : Ended(n);
  }

  IoResult Write(std::span<const iovec> pieces) override {
    if (plain_ != nullptr) return plain_->Write(pieces);
    // OpenSSL wants a blocked write to be tried again with the same bytes in front and no fewer:
    // whoever calls keeps what was not taken, in order, and gathering it again gives that.
    std::array<char, kRecordBytesMax> gathered;
    const iovec record = Gather(pieces, &gathered);
    ERR_clear_error();
    const int n = SSL_write(session_.get(), record.iov_base, static_cast<int>(record.iov_len));
    return n > 0 ? IoResult{.bytes = static_cast<size_t>(n)} : Ended(n);
  }

  void ShutdownWrite() override {
    if (plain_ != nullptr) return plain_->ShutdownWrite();
    ERR_clear_error();
    // Before the handshake is over there is nobody to say goodbye to.
    if (SSL_is_init_finished(session_.get()) == 1) SSL_shutdown(session_.get());
    ERR_clear_error();
    shutdown(socket_.get(), SHUT_WR);
  }

  bool HasBufferedInput() const override {
    return plain_ == nullptr && SSL_has_pending(session_.get()) == 1;
  }

  std::shared_ptr<const std::vector<std::string>> PeerNames() const override {
    std::vector<std::string> names = tls::PeerNames(session_.get());
    if (names.empty()) return nullptr;
    return std::make_shared<const std::vector<std::string>>(std::move(names));
  }

 private:
  struct Freer {
    void operator()(SSL* session) const { SSL_free(session); }
  };

  // One record's worth: a large piece from where it lies, small ones side by side.
  static iovec Gather(std::span<const iovec> pieces, std::array<char, kRecordBytesMax>* gathered) {
    if (pieces.size() == 1 || pieces.front().iov_len >= kRecordBytesMax) {
      return {.iov_base = pieces.front().iov_base,
              .iov_len = std::min(pieces.front().iov_len, kRecordBytesMax)};
    }
    size_t size = 0;
    for (const iovec& piece : pieces) {
      const size_t taken = std::min(piece.iov_len, gathered->size() - size);
      std::memcpy(gathered->data() + size, piece.iov_base, taken);
      size += taken;
    }
    return {.iov_base = gathered->data(), .iov_len = size};
  }

  IoResult Ended(int result) {
    switch (SSL_get_error(session_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {.kind = IoResult::kWantRead};
      case SSL_ERROR_WANT_WRITE:
        return {.kind = IoResult::kWantWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {.kind = IoResult::kEnd};
      default:
        // OpenSSL knows the first bytes of an HTTP request.
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST) return SpeakPlain();
        ERR_clear_error();
        return {.kind = IoResult::kFailed};
    }
  }

  IoResult SpeakPlain() {
    ERR_clear_error();
    base::UniqueFd copy(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return {.kind = IoResult::kFailed};
    plain_ = MakePlainStream(std::move(copy));
    return {.kind = IoResult::kPlainHttp};
  }

  const base::UniqueFd socket_;
  const std::unique_ptr<SSL, Freer> session_;  // Goes before the socket.
  std::unique_ptr<ByteStream> plain_;          // The client turned out to speak no TLS.
};

}  // namespace

std::unique_ptr<ByteStream> MakeTlsStream(const tls::Credentials& credentials,
                                          base::UniqueFd socket) {
  SSL* const session = credentials.NewSession();
  if (session == nullptr) return nullptr;
  if (SSL_set_fd(session, socket.get()) != 1) {
    SSL_free(session);
    return nullptr;
  }
  SSL_set_accept_state(session);
  return std::make_unique<TlsStream>(session, std::move(socket));
}

}  // namespace tensord::front
