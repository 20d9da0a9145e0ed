// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/channel_arguments.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::config {
namespace {

// In gRPC the largest number means "no limit", in milliseconds and elsewhere.
constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();

absl::Duration Milliseconds(int32_t value) {
  return value == kNoLimit ? absl::InfiniteDuration() : absl::Milliseconds(value);
}

std::optional<uint64_t> Bytes(int32_t value) {
  if (value < 0 || value == kNoLimit) return std::nullopt;
  return static_cast<uint64_t>(value);
}

struct Argument {
  std::string_view name;
  int32_t min;
  int32_t max;
  void (*set)(int32_t value, ChannelArguments* arguments);
};

using A = ChannelArguments;
constexpr Argument kArguments[] = {
    {"grpc.max_receive_message_length", -1, kNoLimit,
     [](int32_t v, A* a) { a->receive_bytes_max = Bytes(v); }},
    {"grpc.max_send_message_length", -1, kNoLimit,
     [](int32_t v, A* a) { a->send_bytes_max = Bytes(v); }},
    {"grpc.max_concurrent_streams", 1, kNoLimit,
     [](int32_t v, A* a) { a->streams_max = static_cast<uint32_t>(v); }},
    {"grpc.max_connection_idle_ms", 1, kNoLimit,
     [](int32_t v, A* a) { a->idle_max = Milliseconds(v); }},
    {"grpc.max_connection_age_ms", 1, kNoLimit,
     [](int32_t v, A* a) { a->age_max = Milliseconds(v); }},
    {"grpc.max_connection_age_grace_ms", 0, kNoLimit,
     [](int32_t v, A* a) { a->age_grace = Milliseconds(v); }},
    {"grpc.keepalive_time_ms", 1, kNoLimit,
     [](int32_t v, A* a) { a->keepalive_every = Milliseconds(v); }},
    {"grpc.keepalive_timeout_ms", 0, kNoLimit,
     [](int32_t v, A* a) { a->keepalive_wait = Milliseconds(v); }},
    {"grpc.keepalive_permit_without_calls", 0, 1,
     [](int32_t v, A* a) { a->keepalive_without_calls = v == 1; }},
    {"grpc.default_compression_algorithm", 0, 2,
     [](int32_t v, A* a) { a->compression = static_cast<A::Compression>(v); }},
};

const Argument* Find(std::string_view name) {
  for (const Argument& argument : kArguments) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

absl::Status Set(const Argument& argument, std::string_view text, ChannelArguments* arguments) {
  int32_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (!number || value < argument.min || value > argument.max) {
    return absl::InvalidArgumentError(base::Cat("--grpc_channel_arguments: ", argument.name,
                                                " takes a number from ", argument.min, " to ",
                                                argument.max, ", not \"", text, "\""));
  }
  argument.set(value, arguments);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChannelArguments> ParseChannelArguments(std::string_view text,
                                                       std::vector<std::string>* warnings) {
  ChannelArguments arguments;
  std::string ignored;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return absl::InvalidArgumentError(
          base::Cat("--grpc_channel_arguments takes a comma list of name=value; \"", item,
                    "\" has no \"=\""));
    }
    const Argument* const argument = Find(item.substr(0, equals));
    if (argument == nullptr) {
      ignored += base::Cat(ignored.empty() ? "" : ", ", item.substr(0, equals));
    } else {
      RETURN_IF_ERROR(Set(*argument, item.substr(equals + 1), &arguments));
    }
  }
  if (!ignored.empty() && warnings != nullptr) {
    warnings->push_back(base::Cat("--grpc_channel_arguments: ", ignored,
                                  " has no effect: the gRPC library it belongs to is not used"));
  }
  return arguments;
}

}  // namespace tensord::config
