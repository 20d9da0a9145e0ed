// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace tensord::models {

// What lies in a version directory at one moment. Times and sizes only, and the few bytes of the
// files that tell how long the others must be.
struct FilesSeen {
  // What is missing; empty when all that the model needs seems to be there.
  std::string missing;
  // Like `missing`, but a guess: taken back when the files stay as they are for long.
  std::string doubt;
  uint64_t bytes = 0;
  uint64_t warm_up_bytes = 0;                      // Of the recorded requests among them.
  bool tflite = false;                             // Its model.tflite is what will be served.
  std::optional<std::string> batching_parameters;  // That file's text, when it can be read here.
  uint64_t fingerprint = 0;  // Of names, sizes, modification times, inodes, rights. Never 0.
  absl::Time newest;         // When the last byte came, by the file system's clock.
};

// Looks at the directory `name` below the open directory `base`. May block as long as the file
// system does. What cannot be read is left to the worker to complain about, whose rights differ.
// With `prefer_tflite` a model.tflite is all that is needed, as in the original.
FilesSeen LookAt(int base, const std::string& name, bool prefer_tflite);

}  // namespace tensord::models
