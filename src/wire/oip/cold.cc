// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/cold.h"

#include <array>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tensord/open_inference.pb.h"
#include "wire/json/cursor.h"
#include "wire/json/print.h"
#include "wire/oip/datatype.h"
#include "wire/oip/json_text.h"
#include "wire/oip/request.h"

namespace tensord::wire {
namespace {

using tensor::Endpoint;

constexpr std::string_view kServerName = "tensord";
constexpr std::string_view kPlatform = "tensorflow_savedmodel";
constexpr std::string_view kBackend = "tensorflow";
constexpr std::array<std::string_view, 4> kExtensions = {
    "binary_tensor_data", "model_configuration", "model_repository", "statistics"};

std::string Serialize(const google::protobuf::MessageLite& message) {
  return message.SerializeAsString();
}

template <typename Message>
absl::StatusOr<Message> Parse(std::string_view bytes) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return absl::InvalidArgumentError(
      base::Cat("the bytes are not an ", Message::descriptor()->full_name()));
}

// The datatype of an endpoint that the protocol cannot name, too: a client then sees that it is
// there.
std::string DatatypeOf(const Endpoint& endpoint) {
  const std::string_view name = OipName(endpoint.dtype);
  return name.empty() || !endpoint.dense ? "INVALID" : std::string(name);
}

// An open rank has no form: as Triton, one open dim.
std::vector<int64_t> ShapeOf(const Endpoint& endpoint) {
  return endpoint.shape.unknown_rank ? std::vector<int64_t>{-1} : endpoint.shape.dims;
}

void AddEndpoint(const Endpoint& endpoint,
                 inference::ModelMetadataResponse::TensorMetadata* metadata) {
  metadata->set_name(base::ToUtf8(endpoint.name));
  metadata->set_datatype(DatatypeOf(endpoint));
  for (const int64_t dim : ShapeOf(endpoint)) metadata->add_shape(dim);
}

// Triton's configurations have other names for the same types.
std::string ConfigTypeOf(const Endpoint& endpoint) {
  const std::string name = DatatypeOf(endpoint);
  return base::Cat("TYPE_", name == "BYTES" ? "STRING" : name);
}

template <typename Message>
void AddConfigured(const Endpoint& endpoint, Message* message) {
  message->set_name(base::ToUtf8(endpoint.name));
  auto type = inference::TYPE_INVALID;
  (void)inference::DataType_Parse(ConfigTypeOf(endpoint), &type);
  message->set_data_type(type);
  for (const int64_t dim : ShapeOf(endpoint)) message->add_dims(dim);
}

// How a description names what it says of a tensor.
struct TensorWords {
  std::string_view type;
  std::string_view shape;
  std::string (*type_of)(const Endpoint&);
};
constexpr TensorWords kMetadataWords = {"datatype", "shape", DatatypeOf};
constexpr TensorWords kConfigWords = {"data_type", "dims", ConfigTypeOf};

void PrintTensors(std::string_view name, std::span<const Endpoint> endpoints,
                  const TensorWords& words, JsonText* json) {
  json->Name(name);
  json->Open('[');
  for (const Endpoint& endpoint : endpoints) {
    json->Open('{');
    json->Name("name");
    json->Text(endpoint.name);
    json->Name(words.type);
    json->Text(words.type_of(endpoint));
    json->Name(words.shape);
    json->Open('[');
    for (const int64_t dim : ShapeOf(endpoint)) json->Number(dim);
    json->Close(']');
    json->Close('}');
  }
  json->Close(']');
}

std::string VersionText(const OipIndexEntry& entry) {
  return entry.version ? base::Cat(*entry.version) : std::string();
}

absl::Status NoParameters(std::string_view name) {
  return absl::InvalidArgumentError(
      base::Cat("the parameter ", name,
                " is not taken: a model is loaded as this server's configuration describes it"));
}

// An object, of which visit(name, value) sees each member.
template <typename Visit>
absl::Status ReadObject(std::string_view body, Visit visit) {
  JsonCursor cursor(body);
  cursor.SkipSpace();
  if (cursor.at() == cursor.end()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const JsonValue object, cursor.ReadValue());
  cursor.SkipSpace();
  if (object.kind != JsonKind::kObject || cursor.at() != cursor.end()) {
    return absl::InvalidArgumentError("the body must be a JSON object, or empty");
  }
  JsonCursor inside(object.text);
  return ForEachJsonMember(&inside, [&](std::string_view name) -> absl::Status {
    ASSIGN_OR_RETURN(const JsonValue value, inside.ReadValue());
    return visit(name, value);
  });
}

}  // namespace

absl::StatusOr<tensor::ModelSpec> ParseOipModelRequest(std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto message, Parse<inference::ModelMetadataRequest>(bytes));
  tensor::ModelSpec spec;
  spec.name = message.name();
  ASSIGN_OR_RETURN(spec.version, ParseOipVersion(message.version()));
  return spec;
}

std::string EncodeOipServer(const OipServer& server) {
  inference::ServerMetadataResponse message;
  message.set_name(std::string(kServerName));
  message.set_version(std::string(server.version));
  for (const std::string_view extension : kExtensions) {
    message.add_extensions(std::string(extension));
  }
  return Serialize(message);
}

std::string PrintOipServer(const OipServer& server) {
  JsonText json;
  json.Open('{');
  json.Name("name");
  json.Text(kServerName);
  json.Name("version");
  json.Text(server.version);
  json.Name("extensions");
  json.Open('[');
  for (const std::string_view extension : kExtensions) json.Text(extension);
  json.Close(']');
  json.Close('}');
  return json.Take();
}

std::string EncodeOipFlag(bool value) {
  inference::ModelReadyResponse message;
  message.set_ready(value);
  return Serialize(message);
}

std::string PrintOipModelReady(std::string_view model) {
  std::string out = "{\"name\":";
  AppendJsonString(base::ToUtf8(model), &out);
  return out + ",\"ready\":true}";
}

std::string EncodeOipModel(const OipModel& model) {
  inference::ModelMetadataResponse message;
  message.set_name(base::ToUtf8(model.name));
  for (const int64_t version : model.versions) message.add_versions(base::Cat(version));
  message.set_platform(std::string(kPlatform));
  if (model.signature != nullptr) {
    for (const Endpoint& input : model.signature->inputs) AddEndpoint(input, message.add_inputs());
    for (const Endpoint& output : model.signature->outputs) {
      AddEndpoint(output, message.add_outputs());
    }
  }
  return Serialize(message);
}

std::string PrintOipModel(const OipModel& model) {
  JsonText json;
  json.Open('{');
  json.Name("name");
  json.Text(model.name);
  json.Name("versions");
  json.Open('[');
  for (const int64_t version : model.versions) json.Text(base::Cat(version));
  json.Close(']');
  json.Name("platform");
  json.Text(kPlatform);
  std::span<const Endpoint> inputs;
  std::span<const Endpoint> outputs;
  if (model.signature != nullptr) {
    inputs = model.signature->inputs;
    outputs = model.signature->outputs;
  }
  PrintTensors("inputs", inputs, kMetadataWords, &json);
  PrintTensors("outputs", outputs, kMetadataWords, &json);
  json.Close('}');
  return json.Take();
}

std::string EncodeOipConfig(const OipModel& model) {
  inference::ModelConfigResponse message;
  inference::ModelConfig* const config = message.mutable_config();
  config->set_name(base::ToUtf8(model.name));
  config->set_platform(std::string(kPlatform));
  config->set_backend(std::string(kBackend));
  if (model.signature != nullptr) {
    for (const Endpoint& input : model.signature->inputs) AddConfigured(input, config->add_input());
    for (const Endpoint& output : model.signature->outputs) {
      AddConfigured(output, config->add_output());
    }
  }
  return Serialize(message);
}

std::string PrintOipConfig(const OipModel& model) {
  JsonText json;
  json.Open('{');
  json.Name("name");
  json.Text(model.name);
  json.Name("platform");
  json.Text(kPlatform);
  json.Name("backend");
  json.Text(kBackend);
  json.Name("max_batch_size");
  json.Number(0);
  std::span<const Endpoint> inputs;
  std::span<const Endpoint> outputs;
  if (model.signature != nullptr) {
    inputs = model.signature->inputs;
    outputs = model.signature->outputs;
  }
  PrintTensors("input", inputs, kConfigWords, &json);
  PrintTensors("output", outputs, kConfigWords, &json);
  json.Close('}');
  return json.Take();
}

absl::StatusOr<bool> ParseOipIndexRequest(std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto message, Parse<inference::RepositoryIndexRequest>(bytes));
  return message.ready();
}

std::string EncodeOipIndex(std::span<const OipIndexEntry> entries) {
  inference::RepositoryIndexResponse message;
  for (const OipIndexEntry& entry : entries) {
    auto* const model = message.add_models();
    model->set_name(base::ToUtf8(entry.name));
    model->set_version(VersionText(entry));
    model->set_state(entry.state);
    model->set_reason(base::ToUtf8(entry.reason));
  }
  return Serialize(message);
}

absl::StatusOr<bool> ReadOipIndexBody(std::string_view body) {
  bool ready = false;
  RETURN_IF_ERROR(ReadObject(body, [&](std::string_view name, const JsonValue& value) {
    if (IsJsonName(name, "ready")) ready = value.kind == JsonKind::kTrue;
    return absl::OkStatus();
  }));
  return ready;
}

std::string PrintOipIndex(std::span<const OipIndexEntry> entries) {
  JsonText json;
  json.Open('[');
  for (const OipIndexEntry& entry : entries) {
    json.Open('{');
    json.Name("name");
    json.Text(entry.name);
    if (entry.version) {
      json.Name("version");
      json.Text(VersionText(entry));
    }
    json.Name("state");
    json.Text(entry.state);
    if (!entry.reason.empty()) {
      json.Name("reason");
      json.Text(entry.reason);
    }
    json.Close('}');
  }
  json.Close(']');
  return json.Take();
}

absl::StatusOr<std::string> ParseOipRepositoryRequest(std::string_view bytes,
                                                      bool may_have_parameters) {
  ASSIGN_OR_RETURN(const auto message, Parse<inference::RepositoryModelLoadRequest>(bytes));
  if (!may_have_parameters && !message.parameters().empty()) {
    return NoParameters(message.parameters().begin()->first);
  }
  if (message.model_name().empty()) return absl::InvalidArgumentError("the request names no model");
  return message.model_name();
}

absl::Status CheckOipLoadBody(std::string_view body) {
  return ReadObject(body, [](std::string_view name, const JsonValue& value) {
    if (!IsJsonName(name, "parameters") || value.children == 0) return absl::OkStatus();
    JsonCursor cursor(value.text);
    return ForEachJsonMember(
        &cursor, [](std::string_view parameter) { return NoParameters(UnescapeJson(parameter)); });
  });
}

}  // namespace tensord::wire
