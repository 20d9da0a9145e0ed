// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/tls_keeper.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "loop/loop_set.h"
#include "obs/log.h"

namespace tensord::serve {
namespace {

// Certificates are rotated days before they expire.
constexpr absl::Duration kLookEvery = absl::Seconds(10);

using MaybeCredentials = std::shared_ptr<const tls::Credentials>;

absl::StatusOr<MaybeCredentials> Make(const std::optional<tls::Material>& material,
                                      tls::Alpn alpn) {
  if (!material.has_value()) return MaybeCredentials();
  return tls::Credentials::Create(*material, alpn);
}

void Say(std::string_view port, const std::optional<tls::Material>& material,
         const MaybeCredentials& credentials, absl::Time wall) {
  if (credentials == nullptr) return;
  obs::Info("TLS for {}: {}{}", port, credentials->description(),
            material->verify_client ? "; clients must have a certificate" : "");
  if (credentials->expires() < wall) {
    obs::Warn("TLS for {}: the certificate has expired; clients will refuse it", port);
  }
}

// Clients refuse an expired certificate, so none takes the place of one that they accept. At the
// start there is no better one.
absl::Status MayFollow(std::string_view port, const MaybeCredentials& fresh,
                       const MaybeCredentials& in_use, absl::Time wall) {
  if (fresh == nullptr || in_use == nullptr) return absl::OkStatus();
  if (fresh->expires() >= wall || in_use->expires() < wall) return absl::OkStatus();
  return absl::FailedPreconditionError(
      base::Cat("the new certificate for ", port, " has expired (", fresh->description(), ")"));
}

}  // namespace

TlsKeeper::TlsKeeper(const config::ServerOptions& options, loop::EventLoop& control,
                     loop::LoopThread& files, std::function<void(const config::FileTexts&)> used)
    : options_(options), control_(control), files_(files), used_(std::move(used)) {}

absl::Status TlsKeeper::Open(config::FileTexts* texts) {
  ASSIGN_OR_RETURN(const config::TlsPorts ports, config::LoadTls(options_, texts));
  RETURN_IF_ERROR(Use(ports));
  if (!ports.grpc && !ports.rest) return absl::OkStatus();
  if (ports.grpc && !ports.rest && options_.rest_api_port != 0) {
    obs::Warn(
        "the REST port has no TLS, as with the original: --tls_certificate_file gives it one");
  }
  LookLater();
  return absl::OkStatus();
}

absl::Status TlsKeeper::Use(const config::TlsPorts& ports) {
  ASSIGN_OR_RETURN(MaybeCredentials grpc, Make(ports.grpc, config::GrpcAlpn(options_)));
  ASSIGN_OR_RETURN(MaybeCredentials rest, Make(ports.rest, tls::Alpn::kHttp2AndHttp1));
  ASSIGN_OR_RETURN(MaybeCredentials admin, Make(ports.admin, tls::Alpn::kHttp2AndHttp1));
  const absl::Time wall = base::WallTime();
  RETURN_IF_ERROR(MayFollow("gRPC", grpc, grpc_.Get(), wall));
  RETURN_IF_ERROR(MayFollow("REST", rest, rest_.Get(), wall));
  Say("gRPC", ports.grpc, grpc, wall);
  Say("REST", ports.rest, rest, wall);
  ports_ = ports;
  grpc_.Set(std::move(grpc));
  rest_.Set(std::move(rest));
  admin_.Set(std::move(admin));
  return absl::OkStatus();
}

void TlsKeeper::LookLater() {
  control_.At(control_.Now() + kLookEvery, [this] {
    Look();
    LookLater();
  });
}

void TlsKeeper::Look() {
  if (!ports_.grpc && !ports_.rest) return;
  if (!look_.Begin()) return;
  const bool posted = files_.Run([this] {
    config::FileTexts texts;
    absl::StatusOr<config::TlsPorts> ports = config::LoadTls(options_, &texts);
    loop::PostOrDie(control_, [this, ports = std::move(ports), texts = std::move(texts)]() mutable {
      look_.End();
      Take(std::move(ports), texts);
    });
  });
  if (!posted) look_.End();  // The thread has much to do; the next look will do.
}

void TlsKeeper::Take(absl::StatusOr<config::TlsPorts> ports, const config::FileTexts& texts) {
  if (ports.ok() && *ports == ports_) return;
  const absl::Status used = ports.ok() ? Use(*ports) : ports.status();
  if (used.ok()) used_(texts);
  const std::string problem = used.ok() ? std::string() : std::string(base::Message(used));
  if (problem != problem_ && !problem.empty()) {
    obs::Error("TLS: the certificates in use stay: {}", problem);
  }
  problem_ = problem;
}

}  // namespace tensord::serve
