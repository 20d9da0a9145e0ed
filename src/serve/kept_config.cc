// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/kept_config.h"

#include <utility>
#include <vector>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "channel/control.h"
#include "channel/memory_file.h"
#include "obs/log.h"

// One build writes and reads it, so it has no version: field 1 a file (1 its option, 2 its text),
// field 2 the reload, field 3 an unloaded model.
namespace tensord::serve {
namespace {

constexpr absl::Duration kAgain = absl::Milliseconds(100);  // The supervisor reads at once.

std::string EncodeFile(std::string_view option, std::string_view text) {
  std::string bytes;
  base::AppendBytesField(1, option, &bytes);
  base::AppendBytesField(2, text, &bytes);
  return bytes;
}

absl::Status DecodeFile(std::string_view bytes, config::FileTexts* files) {
  std::string option;
  std::string text;
  base::WireReader reader(bytes);
  while (reader.Next()) (reader.field() == 1 ? option : text) = reader.bytes();
  if (!reader.ok()) return absl::InvalidArgumentError("a file that was kept is cut");
  (*files)[std::move(option)] = std::move(text);
  return absl::OkStatus();
}

// Sealed memory with the configuration; none for an empty one.
absl::StatusOr<base::UniqueFd> Sealed(const KeptConfig& config) {
  const std::string bytes = EncodeKeptConfig(config);
  if (bytes.size() > channel::kKeptBytesMax) {
    return absl::ResourceExhaustedError(base::Cat("it takes ", bytes.size(),
                                                  " bytes, more than the ", channel::kKeptBytesMax,
                                                  " that are kept"));
  }
  if (bytes.empty()) return base::UniqueFd();
  return channel::SealBytes("tensord-config", bytes);
}

}  // namespace

std::string EncodeKeptConfig(const KeptConfig& config) {
  std::string bytes;
  for (const auto& [option, text] : config.files) {
    base::AppendBytesField(1, EncodeFile(option, text), &bytes);
  }
  if (config.reload) base::AppendBytesField(2, *config.reload, &bytes);
  for (const std::string& model : config.unloaded) base::AppendBytesField(3, model, &bytes);
  return bytes;
}

absl::StatusOr<KeptConfig> DecodeKeptConfig(std::string_view bytes) {
  KeptConfig config;
  base::WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) RETURN_IF_ERROR(DecodeFile(reader.bytes(), &config.files));
    if (reader.field() == 2) config.reload = std::string(reader.bytes());
    if (reader.field() == 3) config.unloaded.emplace(reader.bytes());
  }
  if (!reader.ok()) return absl::InvalidArgumentError("the configuration that was kept is cut");
  return config;
}

KeptConfig TakeKeptConfig(int kept_fd) {
  if (kept_fd < 0) return {};
  const base::UniqueFd memory(kept_fd);
  const absl::StatusOr<std::string> bytes =
      channel::ReadSealed(memory.get(), channel::kKeptBytesMax);
  absl::StatusOr<KeptConfig> config =
      bytes.ok() ? DecodeKeptConfig(*bytes) : absl::StatusOr<KeptConfig>(bytes.status());
  if (config.ok()) return *std::move(config);
  obs::Error("what the last front left cannot be read, so the files are read again: {}",
             base::Message(config.status()));
  return {};
}

void Merge(const config::FileTexts& texts, KeptConfig* config) {
  for (const auto& [option, text] : texts) config->files[option] = text;
}

void ConfigKeeper::Set(KeptConfig config) {
  if (config == now_) return;
  now_ = std::move(config);
  HandOver();
}

void ConfigKeeper::SetFiles(const config::FileTexts& texts) {
  KeptConfig config = now_;
  Merge(texts, &config);
  Set(std::move(config));
}

void ConfigKeeper::HandOver() {
  timers_.Cancel(std::exchange(again_, 0));
  const absl::StatusOr<base::UniqueFd> memory = Sealed(now_);
  std::vector<int> descriptors;
  if (memory.ok() && memory->valid()) descriptors.push_back(memory->get());
  if (!memory.ok()) {
    obs::Warn(
        "the configuration is not kept for the case that this front dies: {}; the files "
        "would be read again then, and what was told by RPC be lost",
        base::Message(memory.status()));
  }
  // Without memory that says to keep nothing: what is older would be wrong.
  channel::ControlRecord record;
  record.kind = channel::ControlKind::kKeep;
  if (!absl::IsResourceExhausted(supervisor_->TrySend(record, descriptors))) return;
  again_ = timers_.At(timers_.Now() + kAgain, [this] {
    again_ = 0;
    HandOver();
  });
}

}  // namespace tensord::serve
