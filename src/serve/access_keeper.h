// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/text.h"
#include "config/access_rules.h"
#include "config/file_texts.h"
#include "config/server_options.h"
#include "front/handlers/access.h"
#include "loop/event_loop.h"
#include "loop/loop_thread.h"
#include "serve/pending_look.h"

namespace tensord::serve {

// The rules of --access_rules_file: reads the file, and again every ten seconds and when told. A
// file that is wrong changes nothing and is said once.
//
// Threads: the control loop; the slot any. Lifetime: loop and thread outlive it.
class AccessKeeper {
 public:
  // `used` gets the text of the file that is in use from now on, but for that of Open.
  AccessKeeper(const config::ServerOptions& options, loop::EventLoop& control,
               loop::LoopThread& files, std::function<void(const config::FileTexts&)> used)
      : options_(options),
        control_(control),
        files_(files),
        used_(std::move(used)),
        look_("access", base::Cat("--access_rules_file=", options.access_rules_file)) {}

  // The first reading, of what is not in `texts`: an error must end the start, for nothing may be
  // open by mistake. Says who may do what.
  absl::Status Open(config::FileTexts* texts);
  // Looks at the file now, off the loop.
  void Look();

  const front::AccessSlot* slot() const { return &slot_; }

 private:
  void Use(config::AccessRules rules);
  void Take(absl::StatusOr<std::optional<config::AccessRules>> rules,
            const config::FileTexts& texts);
  void LookLater();

  const config::ServerOptions& options_;
  loop::EventLoop& control_;
  loop::LoopThread& files_;
  const std::function<void(const config::FileTexts&)> used_;
  PendingLook look_;
  config::AccessRules rules_;  // In use.
  front::AccessSlot slot_;
  std::string problem_;  // The last one that was said.
};

}  // namespace tensord::serve
