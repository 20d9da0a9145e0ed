// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tls/credentials.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tls/testing/certificates.h"

namespace tensord::tls {
namespace {

using testing::HasSubstr;

Material Good() {
  static const Identity identity = MakeIdentity("half.example");
  return {.key = identity.key, .certificate = identity.certificate};
}

std::string ErrorOf(const Material& material) {
  const absl::Status status = Credentials::Create(material, Alpn::kHttp2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message().data(), status.message().size());
}

TEST(Credentials, SayWhoTheyAreAndUntilWhen) {
  const auto credentials = Credentials::Create(Good(), Alpn::kHttp2AndHttp1);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_THAT((*credentials)->description(), HasSubstr("CN = half.example, serial "));
  EXPECT_GT((*credentials)->expires(), absl::UnixEpoch() + absl::Hours(24 * 365 * 50));
  SSL* const session = (*credentials)->NewSession();
  ASSERT_NE(session, nullptr);
  SSL_free(session);
}

TEST(Credentials, AChainMayFollowTheCertificate) {
  const Identity authority = MakeIdentity("authority");
  const Identity server = MakeIdentity("server", &authority);
  EXPECT_TRUE(Credentials::Create(
                  {.key = server.key, .certificate = server.certificate + authority.certificate},
                  Alpn::kHttp2)
                  .ok());
}

TEST(Credentials, WhatIsWrongIsNamed) {
  Material none = Good();
  none.key = "";
  EXPECT_THAT(ErrorOf(none), HasSubstr("the private key cannot be read"));
  Material noise = Good();
  noise.certificate = "not PEM";
  EXPECT_THAT(ErrorOf(noise), HasSubstr("the certificate cannot be read"));
  Material broken = Good();
  broken.certificate.replace(100, 10, "##########");
  EXPECT_THAT(ErrorOf(broken), HasSubstr("the certificate cannot be read"));
  Material foreign = Good();
  foreign.key = MakeIdentity("another").key;
  EXPECT_THAT(ErrorOf(foreign), HasSubstr("do not belong together"));
  Material authority = Good();
  authority.verify_client = true;
  authority.client_ca = "none";
  EXPECT_THAT(ErrorOf(authority), HasSubstr("the clients' authority cannot be read"));
}

TEST(Credentials, AnExpiredCertificateIsKnownAsSuch) {
  const Identity old = MakeIdentity("old", nullptr, -1);
  const auto credentials =
      Credentials::Create({.key = old.key, .certificate = old.certificate}, Alpn::kHttp2);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  const auto good = Credentials::Create(Good(), Alpn::kHttp2);
  EXPECT_LT((*credentials)->expires(), (*good)->expires() - absl::Hours(47));
}

}  // namespace
}  // namespace tensord::tls
