// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "config/file_texts.h"
#include "config/server_options.h"
#include "config/tls_files.h"
#include "loop/event_loop.h"
#include "loop/loop_thread.h"
#include "serve/pending_look.h"
#include "tls/credentials.h"

namespace tensord::serve {

// The TLS credentials of the ports: reads their files, and again every kLookEvery and when told, so
// that a rotated certificate serves new connections while old ones live on. Files that are wrong,
// or expired while those in use are not, change nothing and are said once.
//
// Threads: the control loop; the slots any. Lifetime: loop and thread outlive it.
class TlsKeeper {
 public:
  // `used` gets the texts of the files that are in use from now on, but for those of Open.
  TlsKeeper(const config::ServerOptions& options, loop::EventLoop& control, loop::LoopThread& files,
            std::function<void(const config::FileTexts&)> used);

  // The first reading, of what is not in `texts`: an error must end the start, for a port may never
  // be open in plain by mistake.
  absl::Status Open(config::FileTexts* texts);
  // Looks at the files now, off the loop.
  void Look();

  // Null: that port is plain.
  const tls::CredentialsSlot* grpc() const { return ports_.grpc ? &grpc_ : nullptr; }
  const tls::CredentialsSlot* rest() const { return ports_.rest ? &rest_ : nullptr; }
  const tls::CredentialsSlot* admin() const { return ports_.admin ? &admin_ : nullptr; }

 private:
  absl::Status Use(const config::TlsPorts& ports);
  void Take(absl::StatusOr<config::TlsPorts> ports, const config::FileTexts& texts);
  void LookLater();

  const config::ServerOptions& options_;
  loop::EventLoop& control_;
  loop::LoopThread& files_;
  const std::function<void(const config::FileTexts&)> used_;
  PendingLook look_{"TLS", "the files of certificates and keys"};
  config::TlsPorts ports_;  // In use.
  tls::CredentialsSlot grpc_;
  tls::CredentialsSlot rest_;
  tls::CredentialsSlot admin_;
  std::string problem_;  // The last one that was said.
};

}  // namespace tensord::serve
