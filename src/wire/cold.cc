// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/cold.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <limits>
#include <memory>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tensord/get_model_metadata.pb.h"
#include "tensord/get_model_status.pb.h"
#include "tensord/health.pb.h"
#include "tensord/model_management.pb.h"
#include "wire/json/pretty_writer.h"
#include "wire/status_map.h"

namespace tensord::wire {
namespace {

namespace tf = ::tensorflow;
namespace pb = ::google::protobuf;

template <typename Proto>
absl::StatusOr<Proto> Parse(std::string_view bytes) {
  Proto proto;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        base::Cat("the bytes are not a ", Proto::descriptor()->full_name(), " message"));
  }
  return proto;
}

// Map entries sorted by key, so that the same answer always has the same bytes.
std::string Serialize(const pb::Message& message) {
  std::string bytes;
  pb::io::StringOutputStream stream(&bytes);
  pb::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

tensor::ModelSpec FromProto(const tf::serving::ModelSpec& proto) {
  tensor::ModelSpec spec;
  spec.name = proto.name();
  if (proto.has_version()) spec.version = proto.version().value();
  spec.version_label = proto.version_label();
  spec.signature_name = proto.signature_name();
  return spec;
}

tf::serving::ModelSpec ToProto(const tensor::ModelSpec& spec) {
  tf::serving::ModelSpec proto;
  proto.set_name(spec.name);
  if (spec.version.has_value()) proto.mutable_version()->set_value(*spec.version);
  return proto;
}

tf::serving::StatusProto ToProto(const absl::Status& status) {
  tf::serving::StatusProto proto;
  proto.set_error_code(static_cast<tf::error::Code>(GrpcCode(status.code())));
  proto.set_error_message(base::ToUtf8(base::Message(status)));
  return proto;
}

tf::serving::GetModelStatusResponse ToProto(std::span<const VersionStatus> versions) {
  tf::serving::GetModelStatusResponse response;
  for (const VersionStatus& version : versions) {
    tf::serving::ModelVersionStatus* const line = response.add_model_version_status();
    line->set_version(version.version);
    line->set_state(static_cast<tf::serving::ModelVersionStatus::State>(version.state));
    *line->mutable_status() = ToProto(version.status);
  }
  return response;
}

grpc::health::v1::HealthCheckResponse ToProto(Health health) {
  using Response = grpc::health::v1::HealthCheckResponse;
  Response response;
  response.set_status(health == Health::kServing      ? Response::SERVING
                      : health == Health::kNotServing ? Response::NOT_SERVING
                                                      : Response::SERVICE_UNKNOWN);
  return response;
}

// What came from a worker goes on to clients only when it is what it should be.
absl::StatusOr<tf::serving::SignatureDefMap> ParseSignatureMap(std::string_view bytes) {
  absl::StatusOr<tf::serving::SignatureDefMap> map = Parse<tf::serving::SignatureDefMap>(bytes);
  if (!map.ok()) return absl::InternalError(map.status().message());
  return map;
}

// The JSON of one message as protobuf prints it: a space a level, defaults included. From
// serialized bytes, because only there the order of maps is settled.
absl::StatusOr<std::string> PrintJson(const pb::Message& message, bool preserve_names) {
  constexpr char kPrefix[] = "type.googleapis.com";
  const std::unique_ptr<pb::util::TypeResolver> resolver(
      pb::util::NewTypeResolverForDescriptorPool(kPrefix, pb::DescriptorPool::generated_pool()));
  pb::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = preserve_names;
  std::string json;
  const auto status = pb::util::BinaryToJsonString(
      resolver.get(), base::Cat(kPrefix, "/", message.GetDescriptor()->full_name()),
      Serialize(message), &json, options);
  if (status.ok()) return json;
  return absl::InternalError(
      base::Cat("Failed to convert proto to json. Error: ", status.ToString()));
}

// Names and words of files and runtimes need not be UTF-8, which JSON is.
void PrintText(std::string_view name, std::string_view text, PrettyWriter* writer) {
  writer->Name(base::ToUtf8(name));
  writer->String(base::ToUtf8(text));
}

// One version, with the names and texts that the status document has.
void PrintVersion(const VersionStatus& version, PrettyWriter* writer) {
  const auto state = static_cast<tf::serving::ModelVersionStatus::State>(version.state);
  const tf::serving::StatusProto status = ToProto(version.status);
  writer->StartObject();
  PrintText("version", base::Cat(version.version), writer);
  PrintText("state", tf::serving::ModelVersionStatus::State_Name(state), writer);
  writer->Name("status");
  writer->StartObject();
  PrintText("error_code", tf::error::Code_Name(status.error_code()), writer);
  PrintText("error_message", status.error_message(), writer);
  writer->EndObject();
  writer->EndObject();
}

void PrintTexts(std::string_view name, const std::vector<std::string>& texts,
                PrettyWriter* writer) {
  writer->Name(name);
  writer->StartArray();
  for (const std::string& text : texts) writer->String(base::ToUtf8(text));
  writer->EndArray();
}

void PrintNumber(std::string_view name, int64_t number, PrettyWriter* writer) {
  writer->Name(name);
  base::AppendPiece(writer->BeginValue(), number);
}

void PrintDetails(const VersionDetails& version, PrettyWriter* writer) {
  writer->StartObject();
  PrintText("version", base::Cat(version.version), writer);
  PrintText("stateful", version.stateful_reason, writer);
  PrintTexts("sandbox", version.sandbox, writer);
  PrintText("sandbox_grade", version.sandbox_grade, writer);
  PrintNumber("sandbox_stage", version.sandbox_stage, writer);
  PrintTexts("warnings", version.warnings, writer);
  PrintTexts("runs_alone", version.alone, writer);
  PrintText("warm_up", version.warm_up_source, writer);
  PrintNumber("warm_up_runs", version.warm_up_runs, writer);
  PrintNumber("warm_up_milliseconds", version.warm_up_milliseconds, writer);
  PrintNumber("sessions", version.sessions, writer);
  PrintNumber("replicas", version.replicas, writer);
  PrintNumber("replicas_wanted", version.replicas_wanted, writer);
  PrintNumber("restarts", version.restarts, writer);
  PrintNumber("memory_bytes", version.memory_bytes, writer);
  writer->EndObject();
}

}  // namespace

absl::StatusOr<tensor::ModelSpec> ParseGetModelMetadataRequest(std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto request, Parse<tf::serving::GetModelMetadataRequest>(bytes));
  if (!request.has_model_spec()) return absl::InvalidArgumentError("Missing ModelSpec");
  if (request.metadata_field().empty()) {
    return absl::InvalidArgumentError(
        "GetModelMetadataRequest must specify at least one metadata_field");
  }
  for (const std::string& field : request.metadata_field()) {
    if (field == "signature_def") continue;
    return absl::InvalidArgumentError(
        base::Cat("Metadata field ", field, " is not supported; ask for signature_def"));
  }
  if (request.model_spec().name().empty()) {
    return absl::InvalidArgumentError("ModelSpec has no name specified.");
  }
  return FromProto(request.model_spec());
}

absl::StatusOr<tensor::ModelSpec> ParseGetModelStatusRequest(std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto request, Parse<tf::serving::GetModelStatusRequest>(bytes));
  if (!request.has_model_spec()) return absl::InvalidArgumentError("Missing ModelSpec");
  return FromProto(request.model_spec());
}

absl::StatusOr<ReloadConfigRequest> ParseReloadConfigRequest(std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto request, Parse<tf::serving::ReloadConfigRequest>(bytes));
  if (!request.config().has_model_config_list()) {
    return absl::InvalidArgumentError(
        "ServerModelConfig type not supported by HandleReloadConfigRequest. Only ModelConfigList "
        "is currently supported");
  }
  return ReloadConfigRequest{
      .config = Serialize(request.config()),
      .metric_names = {request.metric_names().begin(), request.metric_names().end()}};
}

absl::StatusOr<std::string> ParseHealthCheckRequest(std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto request, Parse<grpc::health::v1::HealthCheckRequest>(bytes));
  return request.service();
}

absl::StatusOr<std::string> EncodeGetModelMetadataResponse(const tensor::ModelSpec& answered,
                                                           std::string_view signature_def_map) {
  ASSIGN_OR_RETURN(const auto map, ParseSignatureMap(signature_def_map));
  tf::serving::GetModelMetadataResponse response;
  *response.mutable_model_spec() = ToProto(answered);
  pb::Any& any = (*response.mutable_metadata())["signature_def"];
  any.set_type_url("type.googleapis.com/tensorflow.serving.SignatureDefMap");
  any.set_value(Serialize(map));
  return Serialize(response);
}

std::string EncodeGetModelStatusResponse(std::span<const VersionStatus> versions) {
  return Serialize(ToProto(versions));
}

std::string EncodeReloadConfigResponse(const absl::Status& status,
                                       std::span<const std::pair<std::string, int64_t>> increases) {
  tf::serving::ReloadConfigResponse response;
  *response.mutable_status() = ToProto(status);
  for (const auto& [name, increase] : increases) {
    tf::serving::Metric* const metric = response.add_metric();
    metric->set_name(name);
    metric->set_int64_value_increase(increase);
  }
  return Serialize(response);
}

std::string EncodeHealthCheckResponse(Health health) { return Serialize(ToProto(health)); }

std::string EncodeHealthListResponse(std::span<const std::pair<std::string, Health>> services) {
  grpc::health::v1::HealthListResponse response;
  for (const auto& [name, health] : services) {
    (*response.mutable_statuses())[base::ToUtf8(name)] = ToProto(health);
  }
  return Serialize(response);
}

absl::StatusOr<std::string> PrintModelMetadata(const tensor::ModelSpec& answered,
                                               std::string_view signature_def_map) {
  ASSIGN_OR_RETURN(const auto map, ParseSignatureMap(signature_def_map));
  ASSIGN_OR_RETURN(const std::string spec, PrintJson(ToProto(answered), /*preserve_names=*/true));
  ASSIGN_OR_RETURN(const std::string signatures, PrintJson(map, /*preserve_names=*/true));
  // The original glues the two together just so.
  return base::Cat("{\n\"model_spec\":", spec, ",\n\"metadata\": {\"signature_def\": ", signatures,
                   "}\n}\n");
}

absl::StatusOr<std::string> PrintModelStatus(std::span<const VersionStatus> versions) {
  return PrintJson(ToProto(versions), /*preserve_names=*/false);
}

std::string PrintModelList(std::span<const ListedModel> models) {
  std::string body;
  PrettyWriter writer(&body);
  writer.StartObject();
  writer.Name("models");
  writer.StartArray();
  for (const ListedModel& model : models) {
    writer.StartObject();
    PrintText("name", model.name, &writer);
    writer.Name("labels");
    writer.StartObject();
    for (const auto& [label, version] : model.labels) PrintText(label, base::Cat(version), &writer);
    writer.EndObject();
    writer.Name("model_version_status");
    writer.StartArray();
    for (const VersionStatus& version : model.versions) PrintVersion(version, &writer);
    writer.EndArray();
    writer.Name("details");
    writer.StartArray();
    for (const VersionDetails& version : model.details) PrintDetails(version, &writer);
    writer.EndArray();
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  return body + "\n";
}

}  // namespace tensord::wire
