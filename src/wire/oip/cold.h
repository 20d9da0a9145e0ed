// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "tensor/signature.h"

// The Open Inference Protocol's messages that are rare, as protobuf and as JSON. Requests give
// INVALID_ARGUMENT.
namespace tensord::wire {

// ModelReadyRequest and ModelMetadataRequest, which look alike.
absl::StatusOr<tensor::ModelSpec> ParseOipModelRequest(std::string_view bytes);

struct OipServer {
  std::string_view version;
};
std::string EncodeOipServer(const OipServer& server);
std::string PrintOipServer(const OipServer& server);

// ServerLiveResponse, ServerReadyResponse and ModelReadyResponse, which look alike.
std::string EncodeOipFlag(bool value);
// {"name": ..., "ready": true}
std::string PrintOipModelReady(std::string_view model);

// A model as its metadata shows it. `signature` may be null: none is called by default.
struct OipModel {
  std::string_view name;
  std::vector<int64_t> versions;
  const tensor::Signature* signature = nullptr;
};
std::string EncodeOipModel(const OipModel& model);
std::string PrintOipModel(const OipModel& model);
// The same as Triton's model configuration, which its load generator asks for.
std::string EncodeOipConfig(const OipModel& model);
std::string PrintOipConfig(const OipModel& model);

// One version of the repository's index.
struct OipIndexEntry {
  std::string name;
  std::optional<int64_t> version = {};  // None: the model has no version at all.
  bool ready = false;
  std::string state = {};  // "READY", "LOADING", "UNLOADING", "UNAVAILABLE"
  std::string reason = {};
};
absl::StatusOr<bool> ParseOipIndexRequest(std::string_view bytes);  // Whether only ready ones.
std::string EncodeOipIndex(std::span<const OipIndexEntry> entries);
// The JSON body of an index request, which may be empty.
absl::StatusOr<bool> ReadOipIndexBody(std::string_view body);
std::string PrintOipIndex(std::span<const OipIndexEntry> entries);

// RepositoryModelLoadRequest and RepositoryModelUnloadRequest: the model's name.
// `may_have_parameters`: of unload, whose unload_dependents means nothing here.
absl::StatusOr<std::string> ParseOipRepositoryRequest(std::string_view bytes,
                                                      bool may_have_parameters);
// The JSON body of a load: INVALID_ARGUMENT when it asks for another configuration or other files.
absl::Status CheckOipLoadBody(std::string_view body);

}  // namespace tensord::wire
