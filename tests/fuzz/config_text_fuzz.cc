// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A byte that says which of the configuration files it is, then its text. Whatever stands there,
// reading it ends, with a sentence if it is wrong.

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "config/channel_arguments.h"
#include "config/server_options.h"
#include "config/text_files.h"

namespace tensord {
namespace {

using Options = config::ServerOptions;

constexpr std::array<std::string Options::*, 7> kFiles = {
    &Options::model_config_file,       &Options::model_settings_file,
    &Options::monitoring_config_file,  &Options::platform_config_file,
    &Options::access_rules_file,       &Options::ssl_config_file,
    &Options::batching_parameters_file};

// A file without a place, and its path.
struct LooseFile {
  base::UniqueFd file{memfd_create("fuzz", MFD_CLOEXEC)};
  std::string path = base::Cat("/proc/self/fd/", file.get());
};

void Try(unsigned char which, std::string_view text) {
  std::vector<std::string> warnings;
  if (which % (kFiles.size() + 1) == kFiles.size()) {
    (void)config::ParseChannelArguments(text, &warnings);
    return;
  }
  const LooseFile file;
  TENSORD_CHECK(pwrite(file.file.get(), text.data(), text.size(), 0) ==
                static_cast<ssize_t>(text.size()));
  Options options;
  options.*kFiles[which % kFiles.size()] = file.path;
  options.enable_batching = true;
  const absl::Status status = config::CheckFiles(options, &warnings);
  TENSORD_CHECK(status.ok() || !base::Message(status).empty());
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  tensord::Try(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
