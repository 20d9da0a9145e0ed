// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tensord::config {

// The arguments of the gRPC library that mean something to this server, as --grpc_channel_arguments
// gives them. Unset: the server's own default.
struct ChannelArguments {
  enum class Compression : uint8_t { kNone, kDeflate, kGzip };

  std::optional<uint64_t>
      receive_bytes_max{};                    // Of a request's message; -1 (no limit) stays unset.
  std::optional<uint64_t> send_bytes_max{};   // Of an answer's message; likewise.
  std::optional<uint32_t> streams_max{};      // At once, of a connection.
  std::optional<absl::Duration> idle_max{};   // Of a connection without calls.
  std::optional<absl::Duration> age_max{};    // Of a connection, give or take a tenth.
  std::optional<absl::Duration> age_grace{};  // For its calls to finish then.
  std::optional<absl::Duration> keepalive_every{};
  std::optional<absl::Duration> keepalive_wait{};
  bool keepalive_without_calls = false;
  Compression compression = Compression::kNone;  // Of answers to clients that ask for none.

  bool operator==(const ChannelArguments&) const = default;
};

// Reads a comma list of name=value. INVALID_ARGUMENT names an item without "=", or a value that is
// no number where one is needed. Appends one warning that lists what has no effect here; may be
// null where nobody reads it. Pure.
absl::StatusOr<ChannelArguments> ParseChannelArguments(std::string_view text,
                                                       std::vector<std::string>* warnings);

}  // namespace tensord::config
