// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/tls_files.h"

#include <string>

#include "base/text.h"
#include "config/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tls/testing/certificates.h"

namespace tensord::config {
namespace {

using testing::HasSubstr;

std::string Quoted(const std::string& pem) {
  std::string text = "\"";
  for (const char c : pem) text += c == '\n' ? std::string("\\n") : std::string(1, c);
  return text + "\"";
}

std::string SslConfig(const tls::Identity& identity, const std::string& more = "") {
  return base::Cat("server_key: ", Quoted(identity.key),
                   " server_cert: ", Quoted(identity.certificate), more);
}

TEST(LoadTls, WithoutFilesAllPortsArePlain) {
  EXPECT_EQ(LoadTls({.rest_api_port = 8501}).value(), TlsPorts());
}

TEST(LoadTls, TheOriginalsFileIsForGrpcAlone) {
  const tls::Identity identity = tls::MakeIdentity("server");
  const TextFile file(SslConfig(identity, " client_verify: true custom_ca: \"x\""));
  const auto ports = LoadTls({.rest_api_port = 8501, .ssl_config_file = file.path()});
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_EQ(ports->rest, std::nullopt);
  EXPECT_EQ(ports->grpc, (tls::Material{.key = identity.key,
                                        .certificate = identity.certificate,
                                        .client_ca = "x",
                                        .verify_client = true}));
}

TEST(LoadTls, OurFilesAreForBothPortsAndTheOriginalsGoesFirst) {
  const TextFile certificate("certificate");
  const TextFile key("key");
  const TextFile authority("authority");
  ServerOptions options{.rest_api_port = 8501,
                        .tls_certificate_file = certificate.path(),
                        .tls_key_file = key.path(),
                        .tls_client_ca_file = authority.path()};
  const tls::Material ours{
      .key = "key", .certificate = "certificate", .client_ca = "authority", .verify_client = true};
  EXPECT_EQ(LoadTls(options).value(), (TlsPorts{.grpc = ours, .rest = ours}));
  const TextFile original("server_key: \"k\" server_cert: \"c\"");
  options.ssl_config_file = original.path();
  const TlsPorts ports = LoadTls(options).value();
  EXPECT_EQ(ports.grpc, (tls::Material{.key = "k", .certificate = "c"}));
  EXPECT_EQ(ports.rest, ours);
  // The texts that were read make the same again, whatever the paths say by then.
  FileTexts texts;
  EXPECT_EQ(LoadTls(options, &texts).value(), ports);
  options.tls_certificate_file = options.tls_key_file = options.tls_client_ca_file = "/no/such";
  options.ssl_config_file = "/no/such";
  EXPECT_EQ(LoadTls(options, &texts).value(), ports);
}

TEST(LoadTls, HalfOfThePairIsAnError) {
  const TextFile file("x");
  for (const ServerOptions& options : {ServerOptions{.tls_certificate_file = file.path()},
                                       ServerOptions{.tls_key_file = file.path()},
                                       ServerOptions{.tls_client_ca_file = file.path()}}) {
    EXPECT_EQ(LoadTls(options).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LoadTls, AFileThatIsNotThereIsNamed) {
  const auto status = LoadTls({.ssl_config_file = "/nowhere/ssl"}).status();
  EXPECT_THAT(status.ToString(), HasSubstr("/nowhere/ssl"));
}

TEST(CheckTls, SaysForWhichPortAPartIsWrong) {
  const tls::Identity good = tls::MakeIdentity("good");
  const tls::Identity other = tls::MakeIdentity("other");
  EXPECT_TRUE(
      CheckTls({.grpc = tls::Material{.key = good.key, .certificate = good.certificate}}).ok());
  const auto status =
      CheckTls({.rest = tls::Material{.key = good.key, .certificate = other.certificate}});
  EXPECT_THAT(status.ToString(), HasSubstr("TLS for REST: key and certificate"));
}

}  // namespace
}  // namespace tensord::config
