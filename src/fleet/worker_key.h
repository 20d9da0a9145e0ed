// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/text.h"

namespace tensord::fleet {

// What runs a model: one entry for each engine.
enum class WorkerKind : uint8_t { kTensorFlow, kLiteRt };

// The runtime environment of all workers of that kind: one zygote, whatever their models' settings.
inline constexpr uint32_t kLiteRtRuntime = 3;

// Names one worker of the server. At any moment at most one process has a key; after a death the
// same key is started again.
struct WorkerKey {
  std::string model;
  int64_t version = 0;
  // Tells workers of one version apart. Not dense: a version whose settings change is replaced by
  // workers with other replica numbers.
  int replica = 0;
  WorkerKind kind = WorkerKind::kTensorFlow;
  uint32_t runtime = 0;  // Number of the runtime environment, and so of the zygote.

  auto operator<=>(const WorkerKey&) const = default;  // NOLINT(modernize-use-nullptr): a bug.
};

// "half/3#0", for logs and errors. Kind and runtime show only when they are not the default.
inline std::string ToString(const WorkerKey& key) {
  std::string text = base::Cat(key.model, "/", key.version, "#", key.replica);
  if (key.kind == WorkerKind::kLiteRt) return text + "@litert";
  if (key.runtime != 0) text += base::Cat("@", key.runtime);
  return text;
}

}  // namespace tensord::fleet
