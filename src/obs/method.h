// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensord::obs {

// What a request asked for, as metrics and logs tell it apart.
enum class Method : uint8_t {
  kOther,  // None of the rest, or refused before that was known.
  kPredict,
  kClassify,
  kRegress,
  kMultiInference,
  kGetModelMetadata,
  kGetModelStatus,
  kReload,
  kPreflight,
  kProbe,  // Health, readiness, the metrics page: logged, not counted.
  kCount,
};
inline constexpr size_t kMethods = static_cast<size_t>(Method::kCount);

constexpr std::string_view MethodName(Method method) {
  constexpr std::array<std::string_view, kMethods> kNames = {
      "other",          "Predict",
      "Classify",       "Regress",
      "MultiInference", "GetModelMetadata",
      "GetModelStatus", "HandleReloadConfigRequest",
      "preflight",      "probe"};
  return kNames[static_cast<size_t>(method)];
}

enum class Transport : uint8_t { kGrpc, kRest };
inline constexpr size_t kTransports = 2;

constexpr std::string_view TransportName(Transport transport) {
  return transport == Transport::kGrpc ? "grpc" : "rest";
}

// Where the time of a request goes, in this order and without gaps.
enum class Stage : uint8_t {
  kRead,   // From the first byte to the last of the request's body.
  kParse,  // Decoding, finding the version, checking against the signature.
  kQueue,  // Until a worker gets it.
  kRun,    // From there until its result is back: the hand-over both ways and the runtime.
  kWrite,  // Encoding, and until the kernel has taken the answer's last byte.
};
inline constexpr size_t kStages = 5;

constexpr std::string_view StageName(Stage stage) {
  constexpr std::array<std::string_view, kStages> kNames = {"read", "parse", "queue", "run",
                                                            "write"};
  return kNames[static_cast<size_t>(stage)];
}

}  // namespace tensord::obs
