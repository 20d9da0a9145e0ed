// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/tls_stream.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tls/testing/certificates.h"

namespace tensord::front {
namespace {

using tls::Alpn;

std::span<std::byte> Bytes(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

// Our stream and OpenSSL's client on the two ends of a socket.
class TlsStreamTest : public testing::Test {
 protected:
  TlsStreamTest() {
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const tls::Identity identity = tls::MakeIdentity("server");
    const auto credentials = tls::Credentials::Create(
        {.key = identity.key, .certificate = identity.certificate}, Alpn::kHttp2AndHttp1);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    server_ = MakeTlsStream(**credentials, base::UniqueFd(ends[0]));
    client_end_ = base::UniqueFd(ends[1]);
    context_ = SSL_CTX_new(TLS_client_method());
    client_ = SSL_new(context_);
    SSL_set_fd(client_, client_end_.get());
    SSL_set_connect_state(client_);
  }
  ~TlsStreamTest() override {
    SSL_free(client_);
    SSL_CTX_free(context_);
  }

  // Both move until the handshake is through.
  void ShakeHands() {
    std::string nothing(1, 0);
    for (int turn = 0; turn < 10 && SSL_do_handshake(client_) != 1; ++turn) {
      EXPECT_EQ(server_->Read(Bytes(nothing)).kind, IoResult::kWantRead);
    }
    ASSERT_EQ(SSL_is_init_finished(client_), 1);
    // The client's last message, and the server's tickets.
    EXPECT_EQ(server_->Read(Bytes(nothing)).kind, IoResult::kWantRead);
  }

  // What the client can read now.
  std::string ClientReads() {
    std::string all;
    std::string some(100'000, 0);
    while (true) {
      const int n = SSL_read(client_, some.data(), static_cast<int>(some.size()));
      if (n <= 0) return all;
      all.append(some, 0, static_cast<size_t>(n));
    }
  }

  std::unique_ptr<ByteStream> server_;
  base::UniqueFd client_end_;
  SSL_CTX* context_ = nullptr;
  SSL* client_ = nullptr;
};

TEST_F(TlsStreamTest, BytesGoBothWays) {
  ShakeHands();
  ASSERT_EQ(SSL_write(client_, "question", 8), 8);
  std::string got(100, 0);
  const IoResult read = server_->Read(Bytes(got));
  ASSERT_EQ(read.kind, IoResult::kDone);
  EXPECT_EQ(got.substr(0, read.bytes), "question");
  std::string a = "ans";
  std::string b = "wer";
  const std::vector<iovec> pieces = {{.iov_base = a.data(), .iov_len = 3},
                                     {.iov_base = b.data(), .iov_len = 3}};
  EXPECT_EQ(server_->Write(pieces).bytes, 6u);
  EXPECT_EQ(ClientReads(), "answer");
}

TEST_F(TlsStreamTest, BytesThatWereReadAheadAreKnownToBeThere) {
  ShakeHands();
  ASSERT_EQ(SSL_write(client_, "one", 3), 3);
  ASSERT_EQ(SSL_write(client_, "two", 3), 3);
  std::string got(2, 0);
  EXPECT_EQ(server_->Read(Bytes(got)).bytes, 2u);
  EXPECT_TRUE(server_->HasBufferedInput());
  std::string rest(100, 0);
  EXPECT_EQ(server_->Read(Bytes(rest)).bytes, 1u);
  EXPECT_TRUE(server_->HasBufferedInput());
  EXPECT_EQ(server_->Read(Bytes(rest)).bytes, 3u);
  EXPECT_EQ(server_->Read(Bytes(rest)).kind, IoResult::kWantRead);
  EXPECT_FALSE(server_->HasBufferedInput());
}

TEST_F(TlsStreamTest, AWriteThatTheSocketDoesNotTakeGoesOnWhereItStopped) {
  ShakeHands();
  std::string large(3'000'000, 0);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 1000);
  std::string read;
  size_t sent = 0;
  bool blocked = false;
  while (sent < large.size()) {
    const size_t half = (large.size() - sent) / 2;
    const std::vector<iovec> pieces = {
        {.iov_base = large.data() + sent, .iov_len = half},
        {.iov_base = large.data() + sent + half, .iov_len = large.size() - sent - half}};
    const IoResult wrote = server_->Write(std::span(pieces).subspan(half == 0 ? 1 : 0));
    if (wrote.kind == IoResult::kWantWrite) {
      blocked = true;
      read += ClientReads();
    } else {
      ASSERT_EQ(wrote.kind, IoResult::kDone);
      sent += wrote.bytes;
    }
  }
  read += ClientReads();
  EXPECT_TRUE(blocked);
  EXPECT_TRUE(read == large);
}

TEST_F(TlsStreamTest, AClientThatLeavesIsAnEnd) {
  ShakeHands();
  SSL_shutdown(client_);
  std::string got(10, 0);
  EXPECT_EQ(server_->Read(Bytes(got)).kind, IoResult::kEnd);
}

TEST_F(TlsStreamTest, PlainHttpIsToldFromNoiseAndCanBeAnsweredInPlain) {
  const std::string plain = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(send(client_end_.get(), plain.data(), plain.size(), 0),
            static_cast<ssize_t>(plain.size()));
  std::string got(10, 0);
  EXPECT_EQ(server_->Read(Bytes(got)).kind, IoResult::kPlainHttp);
  EXPECT_FALSE(server_->HasBufferedInput());
  std::string words = "no";
  const std::vector<iovec> pieces = {{.iov_base = words.data(), .iov_len = words.size()}};
  EXPECT_EQ(server_->Write(pieces).bytes, words.size());
  server_->ShutdownWrite();
  std::string heard(10, 0);
  EXPECT_EQ(recv(client_end_.get(), heard.data(), heard.size(), 0), 2);
  EXPECT_EQ(heard.substr(0, 2), "no");
}

TEST_F(TlsStreamTest, NoiseIsAFailedConnection) {
  const std::string noise(200, 'x');
  ASSERT_EQ(send(client_end_.get(), noise.data(), noise.size(), 0),
            static_cast<ssize_t>(noise.size()));
  std::string got(10, 0);
  EXPECT_EQ(server_->Read(Bytes(got)).kind, IoResult::kFailed);
}

TEST_F(TlsStreamTest, TheEndIsSaidToTheClient) {
  ShakeHands();
  server_->ShutdownWrite();
  char byte = 0;
  const int n = SSL_read(client_, &byte, 1);
  EXPECT_EQ(SSL_get_error(client_, n), SSL_ERROR_ZERO_RETURN);
}

TEST_F(TlsStreamTest, GoodbyeBeforeTheHandshakeIsHarmless) {
  server_->ShutdownWrite();
  std::string got(10, 0);
  EXPECT_NE(server_->Read(Bytes(got)).kind, IoResult::kDone);
}

}  // namespace
}  // namespace tensord::front
