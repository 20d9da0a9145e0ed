// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/server_options.h"
#include "front/exchange.h"
#include "front/handlers/access.h"
#include "front/handlers/access_log.h"
#include "front/handlers/audit.h"
#include "front/handlers/servable.h"
#include "loop/loop_thread.h"
#include "models/snapshot.h"
#include "obs/metrics.h"
#include "obs/request_metrics.h"

namespace tensord::front {

// What all handlers share. Constant after start but for the atomics and the audit.
// Lifetime: outlives every loop's Router.
struct ServerContext {
  const config::ServerOptions* options = nullptr;
  obs::RequestMetrics* metrics = nullptr;
  AccessLog* access_log = nullptr;            // Null: off.
  const obs::Metrics* all_metrics = nullptr;  // A reload's caller may ask how much they grew.
  // Applies a serialized tensorflow.serving.ModelServerConfig on the control loop; `done` comes
  // back on `caller`, at the deadline at the latest.
  std::function<void(std::string config, absl::Time deadline, loop::EventLoop& caller,
                     std::function<void(absl::Status)>)>
      reload;
  // Loads a model of the configuration again that was unloaded, or unloads one, likewise.
  std::function<void(std::string model, bool load, absl::Time deadline, loop::EventLoop& caller,
                     std::function<void(absl::Status)>)>
      set_loaded;
  // Makes the metrics page on the control loop and sends it.
  std::function<void(std::shared_ptr<Exchange>)> metrics_page;
  const AccessSlot* access = nullptr;     // Whose rules hold; null, or one without: all is open.
  bool admin_apart = false;               // Admin calls have a listener of their own.
  std::string metrics_path;               // Empty: no page.
  loop::LoopThread* long_work = nullptr;  // See long_work.h; null: there is none.
  std::atomic<bool> draining{false};
  Audit audit;
};

class HealthWatchers;

// What the handlers of one loop share.
// Threads: that loop only.
struct LoopContext {
  ServerContext* server = nullptr;
  loop::EventLoop* loop = nullptr;
  HealthWatchers* watchers = nullptr;
  std::shared_ptr<const models::Snapshot> snapshot;  // Never null; replaced by messages.

  bool ready() const {
    return snapshot->ready && !server->draining.load(std::memory_order_relaxed);
  }
  bool cors() const { return server->options->rest_api_enable_cors_support; }
};

}  // namespace tensord::front
