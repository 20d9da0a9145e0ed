// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/tls_files.h"

#include "base/status_macros.h"
#include "base/text.h"
#include "config/text_proto.h"
#include "tensord/ssl_config.pb.h"
#include "tls/credentials.h"

namespace tensord::config {
namespace {

namespace tfs = tensorflow::serving;

absl::StatusOr<tls::Material> ReadSslConfig(const std::string& path, FileTexts* texts) {
  tfs::SSLConfig file;
  RETURN_IF_ERROR(ReadTextProto("ssl_config_file", path, texts, &file));
  return tls::Material{.key = file.server_key(),
                       .certificate = file.server_cert(),
                       .client_ca = file.custom_ca(),
                       .verify_client = file.client_verify()};
}

absl::StatusOr<std::optional<tls::Material>> ReadPemFiles(const ServerOptions& options,
                                                          FileTexts* texts) {
  const bool certificate = !options.tls_certificate_file.empty();
  if (certificate != !options.tls_key_file.empty()) {
    return absl::InvalidArgumentError(
        "--tls_certificate_file and --tls_key_file must be given together");
  }
  if (!certificate) {
    if (options.tls_client_ca_file.empty()) return std::nullopt;
    return absl::InvalidArgumentError(
        "--tls_client_ca_file needs --tls_certificate_file and --tls_key_file");
  }
  tls::Material material;
  ASSIGN_OR_RETURN(material.certificate,
                   ReadFile("tls_certificate_file", options.tls_certificate_file, texts));
  ASSIGN_OR_RETURN(material.key, ReadFile("tls_key_file", options.tls_key_file, texts));
  if (!options.tls_client_ca_file.empty()) {
    ASSIGN_OR_RETURN(material.client_ca,
                     ReadFile("tls_client_ca_file", options.tls_client_ca_file, texts));
    material.verify_client = true;
  }
  return material;
}

absl::Status CheckOne(const std::optional<tls::Material>& material, std::string_view port) {
  if (!material.has_value()) return absl::OkStatus();
  const absl::Status made = tls::Credentials::Create(*material, tls::Alpn::kHttp2).status();
  return made.ok() ? made : base::WithContext(made, base::Cat("TLS for ", port, ": "));
}

}  // namespace

absl::StatusOr<TlsPorts> LoadTls(const ServerOptions& options, FileTexts* texts) {
  TlsPorts ports;
  ASSIGN_OR_RETURN(ports.rest, ReadPemFiles(options, texts));
  ports.grpc = ports.rest;
  if (options.admin_port != 0) ports.admin = ports.rest;
  if (!options.ssl_config_file.empty()) {
    ASSIGN_OR_RETURN(ports.grpc, ReadSslConfig(options.ssl_config_file, texts));
  }
  if (options.port == options.rest_api_port) ports.rest = ports.grpc;
  return ports;
}

absl::Status CheckTls(const TlsPorts& ports) {
  RETURN_IF_ERROR(CheckOne(ports.grpc, "gRPC"));
  return CheckOne(ports.rest, "REST");
}

tls::Alpn GrpcAlpn(const ServerOptions& options) {
  return options.port == options.rest_api_port ? tls::Alpn::kHttp2AndHttp1 : tls::Alpn::kHttp2;
}

}  // namespace tensord::config
