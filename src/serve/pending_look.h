// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace tensord::serve {

// A look at files, of which one at a time waits for the disk. A file system that hangs cannot be
// hurried, but whoever waits for what a file says now must hear that it is not read.
// Threads: one.
class PendingLook {
 public:
  // `what`: "access", as its lines begin; `files`: the options that name them.
  PendingLook(std::string_view what, std::string_view files) : what_(what), files_(files) {}

  // False: the last one has not ended, and no other may begin. Said at the first time.
  bool Begin();
  void End();

 private:
  const std::string what_;
  const std::string files_;
  bool pending_ = false;
  bool told_ = false;
};

}  // namespace tensord::serve
