// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "config/file_texts.h"
#include "fleet/supervisor_client.h"
#include "loop/timers.h"

namespace tensord::serve {

// By what the server serves, as it was last read or told and held. Options are no part of it: every
// front has the same.
struct KeptConfig {
  config::FileTexts files = {};            // Every file that was read, as it was when it held.
  std::optional<std::string> reload = {};  // A serialized ModelServerConfig, told since the file.
  std::set<std::string> unloaded = {};     // Of the list's models, until loaded again.

  bool operator==(const KeptConfig&) const = default;
};

std::string EncodeKeptConfig(const KeptConfig& config);
// INVALID_ARGUMENT for what is none.
absl::StatusOr<KeptConfig> DecodeKeptConfig(std::string_view bytes);
// Reads what the last front left; empty where it left nothing (-1), or nothing that can be read,
// which the log says.
KeptConfig TakeKeptConfig(int kept_fd);

// Hands the configuration to the supervisor whenever it changes, so that the next front goes on
// with it should this one die: no crash takes a list or a label back, and none makes a broken file
// on the disk matter. What is set is with the supervisor when Set returns, but for a full socket.
//
// Threads: the control loop. Lifetime: timers and supervisor outlive it.
class ConfigKeeper {
 public:
  ConfigKeeper(loop::Timers& timers, fleet::SupervisorClient* supervisor, KeptConfig first)
      : timers_(timers), supervisor_(supervisor), now_(std::move(first)) {}
  ~ConfigKeeper() { timers_.Cancel(again_); }

  const KeptConfig& now() const { return now_; }
  void Set(KeptConfig config);
  // Adds these files to the others, or replaces them.
  void SetFiles(const config::FileTexts& texts);

 private:
  void HandOver();

  loop::Timers& timers_;
  fleet::SupervisorClient* const supervisor_;
  KeptConfig now_;
  loop::TimerId again_ = 0;
};

// Adds the files to those of `config`, or replaces them there.
void Merge(const config::FileTexts& texts, KeptConfig* config);

}  // namespace tensord::serve
