// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/pending_look.h"

#include <utility>

#include "obs/log.h"

namespace tensord::serve {

bool PendingLook::Begin() {
  if (!std::exchange(pending_, true)) return true;
  if (!std::exchange(told_, true)) {
    obs::Error(
        "{}: reading {} takes long; until that ends it is not read again, and what is in use "
        "stays. "
        "A file system that hangs?",
        what_, files_);
  }
  return false;
}

void PendingLook::End() {
  pending_ = false;
  if (std::exchange(told_, false)) obs::Info("{}: {} can be read again", what_, files_);
}

}  // namespace tensord::serve
