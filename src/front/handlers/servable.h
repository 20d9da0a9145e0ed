// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "front/handlers/request_log.h"
#include "loop/event_loop.h"
#include "obs/request_metrics.h"
#include "sched/version_queue.h"
#include "tensor/signature.h"

namespace tensord::front {

// A loaded version, as the handlers of all loops see it.
// Threads: constant after construction; `queue` may be touched on the home loop only.
// Lifetime: whoever holds a shared_ptr may read it. The queue goes when the version has drained:
// every loop has then let go of the snapshot that named this; a message still on its way finds
// null.
struct Servable {
  std::string model;
  int64_t version = 0;
  tensor::SignatureList signatures;
  std::string signature_def_map;  // A serialized tensorflow.serving.SignatureDefMap.
  bool stateful = false;
  loop::EventLoop* home = nullptr;
  sched::VersionQueue* queue = nullptr;  // On the home loop only; null once it has gone.
  obs::ModelMetrics* metrics = nullptr;
  std::shared_ptr<obs::VersionMetrics> version_metrics;
  std::vector<obs::SignatureMetrics*> signature_metrics;  // By index in `signatures`.
  std::vector<bool> batched;                // Likewise: by the operator's batching parameters.
  std::shared_ptr<RequestLog> request_log;  // Never null.
};

}  // namespace tensord::front
