// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/snapshot.h"
#include "models/source_state.h"
#include "models/world.h"

// From the catalog's state to what others see.
namespace tensord::models {

// `desired` and `source` are null for a model that left the configuration.
std::shared_ptr<const ModelEntry> View(const DesiredModel* desired, const SourceState* source,
                                       const ObservedModel& observed, absl::Time now);

// How far a configured model is.
struct Progress {
  enum class Kind : uint8_t { kAvailable, kPending, kFailed, kNothing };  // kNothing: no version.
  Kind kind = Kind::kPending;
  // kFailed, kNothing: "{{name: m version: 2} due to error: DATA_LOSS: ...}", in the original's
  // form.
  std::string error;
};
Progress ProgressOf(const std::string& name, const ModelEntry& entry);

}  // namespace tensord::models
