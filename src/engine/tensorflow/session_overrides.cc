// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/session_overrides.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::engine {
namespace {

constexpr std::string_view kFile = "assets.extra/saved_model_config.pb";

// ConfigProto.graph_options = 10, GraphOptions.rewrite_options = 10,
// RewriterConfig.disable_meta_optimizer = 19.
std::string WithoutMetaOptimizer() {
  std::string rewriter;
  base::AppendVarintField(19, 1, &rewriter);
  std::string graph_options;
  base::AppendBytesField(10, rewriter, &graph_options);
  std::string config;
  base::AppendBytesField(10, graph_options, &config);
  return config;
}

// SessionOverrides: remote_op_remap_config = 1, batch_op_rewriter_config = 2,
// disable_meta_optimizer = 3.
bool ParseOverrides(std::string_view bytes, SessionOverrides* overrides) {
  base::WireReader reader(bytes);
  bool disable = false;
  while (reader.Next()) {
    if (reader.field() == 3 && reader.type() == base::WireType::kVarint) {
      disable = reader.number() != 0;
    } else if (reader.field() == 1 || reader.field() == 2) {
      overrides->warnings.push_back(base::Cat(
          kFile, ": ", reader.field() == 1 ? "remote_op_remap_config" : "batch_op_rewriter_config",
          " has no effect: TensorFlow's own libraries hold no such optimizer"));
    }
  }
  if (disable) overrides->config += WithoutMetaOptimizer();
  return reader.ok();
}

absl::Status Errno(const char* call) {
  return absl::UnavailableError(base::Cat(call, ": ", std::strerror(errno)));
}

// Empty when there is no such file.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  // Never hangs on a FIFO.
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return errno == ENOENT ? absl::StatusOr<std::string>("") : Errno("open");
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return Errno("fstat");
  const auto bytes = static_cast<size_t>(found.st_size);
  if (!S_ISREG(found.st_mode)) return absl::InvalidArgumentError("it is no regular file");
  if (bytes > limits::kSavedModelConfigBytesMax) {
    return absl::InvalidArgumentError(
        base::Cat("it has ", bytes, " bytes; the limit is ", limits::kSavedModelConfigBytesMax));
  }
  std::string text(bytes, '\0');
  const ssize_t got = pread(file.get(), text.data(), bytes, 0);
  if (got < 0) return Errno("read");
  text.resize(static_cast<size_t>(got));
  return text;
}

}  // namespace

absl::StatusOr<SessionOverrides> ParseSavedModelConfig(std::string_view bytes) {
  SessionOverrides overrides;
  base::WireReader reader(bytes);
  while (reader.Next()) {
    // session_overrides = 1; what else there is means nothing outside of TFRT.
    if (reader.field() != 1) continue;
    if (reader.type() != base::WireType::kBytes || !ParseOverrides(reader.bytes(), &overrides)) {
      return absl::InvalidArgumentError("session_overrides is malformed");
    }
  }
  if (!reader.ok()) return absl::InvalidArgumentError("it is no serialized SavedModelConfig");
  return overrides;
}

SessionOverrides ReadSessionOverrides(const std::string& version_directory) {
  const absl::StatusOr<std::string> bytes = ReadFile(base::Cat(version_directory, "/", kFile));
  absl::StatusOr<SessionOverrides> overrides =
      bytes.ok() ? ParseSavedModelConfig(*bytes) : bytes.status();
  if (overrides.ok()) return *std::move(overrides);
  SessionOverrides none;
  none.warnings.push_back(base::Cat(kFile, " is ignored: ", base::Message(overrides.status())));
  return none;
}

}  // namespace tensord::engine
