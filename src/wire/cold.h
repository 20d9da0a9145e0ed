// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "wire/chars.h"

// The messages that are rare: generated protobuf classes do the work. Requests give
// INVALID_ARGUMENT, in the original's words where it has some.
namespace tensord::wire {

// The one metadata field there is, "signature_def", must be asked for.
absl::StatusOr<tensor::ModelSpec> ParseGetModelMetadataRequest(std::string_view bytes);

// The name may be empty: no model is called so, which is then not found.
absl::StatusOr<tensor::ModelSpec> ParseGetModelStatusRequest(std::string_view bytes);

struct ReloadConfigRequest {
  std::string config;  // A serialized tensorflow.serving.ModelServerConfig: a model_config_list.
  std::vector<std::string> metric_names;
};
absl::StatusOr<ReloadConfigRequest> ParseReloadConfigRequest(std::string_view bytes);

// The service's name; empty means the whole server.
absl::StatusOr<std::string> ParseHealthCheckRequest(std::string_view bytes);

// `answered` holds the model's name and the version whose signatures these are, as a serialized
// SignatureDefMap. INTERNAL when the bytes are not one (they come from a worker).
absl::StatusOr<std::string> EncodeGetModelMetadataResponse(const tensor::ModelSpec& answered,
                                                           std::string_view signature_def_map);

// One line of a status answer.
struct VersionStatus {
  int64_t version = 0;
  int state = 0;  // As ModelVersionStatus.State: 10 START .. 50 END.
  absl::Status status;
};
// Lists them in the order given; the original puts the highest version first.
std::string EncodeGetModelStatusResponse(std::span<const VersionStatus> versions);

// `increases`: each metric asked for, and how much it grew during the call.
std::string EncodeReloadConfigResponse(const absl::Status& status,
                                       std::span<const std::pair<std::string, int64_t>> increases);

enum class Health : uint8_t { kServing, kNotServing, kUnknownService };
std::string EncodeHealthCheckResponse(Health health);
// By service.
std::string EncodeHealthListResponse(std::span<const std::pair<std::string, Health>> services);

// REST bodies of GET /v1/models/NAME[/metadata], in the original's layout; signatures, inputs and
// outputs sorted by name, where the original leaves their order to a hash map.
absl::StatusOr<std::string> PrintModelMetadata(const tensor::ModelSpec& answered,
                                               std::string_view signature_def_map);
absl::StatusOr<std::string> PrintModelStatus(std::span<const VersionStatus> versions);

// What the original's status has no place for.
struct VersionDetails {
  int64_t version = 0;
  std::string stateful_reason = {};  // Empty: not stateful.
  std::vector<std::string> sandbox = {};
  std::string sandbox_grade = {};
  int64_t sandbox_stage = 0;
  std::vector<std::string> warnings = {};
  std::vector<std::string> alone = {};  // Signatures whose calls share no runs unasked, and why.
  std::string warm_up_source = {};      // Empty: nothing ran.
  int64_t warm_up_runs = 0;
  int64_t warm_up_milliseconds = 0;
  int64_t sessions = 1;  // In each worker; two: a wide one for runs alone, a narrow one.
  int64_t replicas = 0;  // That serve.
  int64_t replicas_wanted = 0;
  int64_t restarts = 0;
  int64_t memory_bytes = 0;  // Private, of all its workers.
};
// One model of the list.
struct ListedModel {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> labels;
  std::vector<VersionStatus> versions;
  std::vector<VersionDetails> details;
};
// The body of GET /v1/models, which the original has not: each model with its labels, its versions
// as PrintModelStatus shows them, and what else is known of them. docs/rest.md has the form.
std::string PrintModelList(std::span<const ListedModel> models);

}  // namespace tensord::wire
