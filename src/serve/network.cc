// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/network.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "config/channel_arguments.h"
#include "config/check.h"
#include "obs/log.h"
#include "serve/descriptors.h"

namespace tensord::serve {
namespace {

size_t CountListeners(const supervisor::FrontSockets& sockets) {
  size_t count = 0;
  for (const supervisor::LoopSockets& loop : sockets.loops) {
    for (const int fd :
         {loop.grpc_fd, loop.rest_fd, loop.unix_fd, loop.admin_fd, loop.admin_unix_fd}) {
      count += fd >= 0 ? 1 : 0;
    }
  }
  return count;
}

front::GrpcEncoding EncodingOf(config::ChannelArguments::Compression compression) {
  switch (compression) {
    case config::ChannelArguments::Compression::kGzip:
      return front::GrpcEncoding::kGzip;
    case config::ChannelArguments::Compression::kDeflate:
      return front::GrpcEncoding::kDeflate;
    case config::ChannelArguments::Compression::kNone:
      break;
  }
  return front::GrpcEncoding::kIdentity;
}

front::Http2Settings SettingsOf(const config::ChannelArguments& given) {
  front::Http2Settings settings;
  settings.message_bytes_max = given.receive_bytes_max.value_or(settings.message_bytes_max);
  settings.answer_bytes_max = given.send_bytes_max.value_or(settings.answer_bytes_max);
  settings.streams_max =
      std::min(given.streams_max.value_or(settings.streams_max), settings.streams_max);
  settings.idle_max = given.idle_max.value_or(settings.idle_max);
  settings.age_max = given.age_max.value_or(settings.age_max);
  settings.age_grace = given.age_grace.value_or(settings.age_grace);
  settings.keepalive_every = given.keepalive_every.value_or(settings.keepalive_every);
  settings.keepalive_wait = given.keepalive_wait.value_or(settings.keepalive_wait);
  settings.keepalive_without_calls = given.keepalive_without_calls;
  settings.answer_encoding = EncodingOf(given.compression);
  return settings;
}

}  // namespace

Network::Network(loop::LoopSet* loops, front::ServerContext* context, const TlsKeeper* tls,
                 uint64_t request_bytes_budget)
    : loops_(loops), tls_(tls), budget_(request_bytes_budget) {
  per_loop_.resize(static_cast<size_t>(loops->size()));
  for (int i = 0; i < loops->size(); ++i) {
    per_loop_[static_cast<size_t>(i)].router =
        std::make_unique<front::Router>(context, &loops->at(i));
  }
}

void Network::Open(const supervisor::FrontSockets& sockets, const config::ServerOptions& options,
                   std::function<void(absl::Status)> done) {
  if (sockets.loops.size() != per_loop_.size()) {
    return done(absl::InternalError("the supervisor opened sockets for another number of loops"));
  }
  const auto arguments = config::ParseChannelArguments(options.grpc_channel_arguments, nullptr);
  if (!arguments.ok()) return done(arguments.status());
  grpc_ = SettingsOf(*arguments);
  admin_door_ = config::IsLoopback(options.admin_bind_address) ? front::Door::kAdminLocal
                                                               : front::Door::kAdmin;
  cors_ = options.rest_api_enable_cors_support;
  const DescriptorLimit files = RaiseDescriptorLimit();
  connections_max_ = ConnectionsMax(files.now, CountListeners(sockets));
  obs::Info("open files: at most {} (the limit was {}); connections: at most {} a listening socket",
            files.now, files.before, connections_max_);
  // On one port, the first bytes of a connection tell gRPC from REST.
  const bool shared_port = options.port == options.rest_api_port;
  auto results = std::make_shared<std::vector<absl::Status>>(per_loop_.size());
  loops_->OnEach(
      [this, sockets, shared_port, results](int i) {
        const auto index = static_cast<size_t>(i);
        (*results)[index] = OpenLoop(i, sockets.loops[index], shared_port);
      },
      [results, done = std::move(done)] {
        for (const absl::Status& result : *results) {
          if (!result.ok()) return done(result);
        }
        done(absl::OkStatus());
      });
}

absl::Status Network::OpenLoop(int loop, const supervisor::LoopSockets& sockets, bool shared_port) {
  constexpr front::Protocols kBoth = {.http1 = true, .http2 = true};
  constexpr front::Protocols kHttp2 = {.http1 = false, .http2 = true};
  RETURN_IF_ERROR(
      OpenOne(loop, sockets.grpc_fd,
              {.protocols = shared_port ? kBoth : kHttp2, .grpc = true, .tls = tls_->grpc()}));
  RETURN_IF_ERROR(OpenOne(loop, sockets.rest_fd, {.protocols = kBoth, .tls = tls_->rest()}));
  RETURN_IF_ERROR(OpenOne(loop, sockets.unix_fd, {.protocols = kHttp2, .grpc = true}));
  RETURN_IF_ERROR(
      OpenOne(loop, sockets.admin_fd,
              {.protocols = kBoth, .grpc = true, .door = admin_door_, .tls = tls_->admin()}));
  return OpenOne(loop, sockets.admin_unix_fd,
                 {.protocols = kBoth, .grpc = true, .door = front::Door::kAdminLocal});
}

absl::Status Network::OpenOne(int loop, int fd, const Way& way) {
  if (fd < 0) return absl::OkStatus();
  if (listen(fd, SOMAXCONN) != 0) {
    return absl::InternalError(base::Cat("listen: ", std::strerror(errno)));
  }
  // The supervisor's socket stays: a copy is what the listener may close.
  base::UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  PerLoop& own = per_loop_[static_cast<size_t>(loop)];
  front::ListenerOptions options;
  options.protocols = way.protocols;
  options.connections_max = connections_max_;
  options.grpc = way.grpc;
  if (way.grpc) options.http2 = grpc_;
  options.cors = cors_;
  options.door = way.door;
  options.tls = way.tls;
  options.inflated_budget = &inflated_budget_;
  ASSIGN_OR_RETURN(std::unique_ptr<front::Listener> listener,
                   front::Listener::Create(&loops_->at(loop), std::move(copy), options,
                                           own.router.get(), &budget_));
  own.listeners.push_back(std::move(listener));
  return absl::OkStatus();
}

void Network::Publish(std::shared_ptr<const models::Snapshot> snapshot, loop::Task after) {
  loops_->OnEach(
      [this, snapshot](int i) { per_loop_[static_cast<size_t>(i)].router->SetSnapshot(snapshot); },
      std::move(after));
}

void Network::AnnounceDrain() {
  loops_->OnEach([this](int i) { per_loop_[static_cast<size_t>(i)].router->OnDraining(); }, [] {});
}

void Network::Drain(absl::Time deadline, loop::Task done) {
  // One count for all listeners of all loops, and one for "all have been told".
  struct Round {
    std::atomic<int> left{1};
    loop::Task done;
  };
  auto round = std::make_shared<Round>();
  round->done = std::move(done);
  const auto one_less = [this, round] {
    if (round->left.fetch_sub(1) == 1) {
      loop::PostOrDie(loops_->control(), [round] { round->done(); });
    }
  };
  loops_->OnEach(
      [this, deadline, round, one_less](int i) {
        per_loop_[static_cast<size_t>(i)].router->EndStreams();
        for (const auto& listener : per_loop_[static_cast<size_t>(i)].listeners) {
          round->left.fetch_add(1);
          listener->Drain(deadline, one_less);
        }
      },
      one_less);
}

void Network::CountConnections(std::function<void(size_t)> done) {
  auto sum = std::make_shared<std::atomic<size_t>>(0);
  loops_->OnEach(
      [this, sum](int i) {
        for (const auto& listener : per_loop_[static_cast<size_t>(i)].listeners) {
          sum->fetch_add(listener->connections());
        }
      },
      [sum, done = std::move(done)] { done(sum->load()); });
}

}  // namespace tensord::serve
