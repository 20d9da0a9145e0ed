// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/text.h"

namespace tensord::config {

// A file with this text until the end of the test.
class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_(base::Cat(testing::TempDir(), "/tensord_text_", getpid(), "_", count_++, ".pbtxt")) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  const std::string path_;
};

}  // namespace tensord::config
