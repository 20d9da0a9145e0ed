// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/cold.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/protobuf_wire.h"
#include "base/text.h"
#include "tensord/get_model_metadata.pb.h"
#include "tensord/get_model_status.pb.h"
#include "tensord/health.pb.h"
#include "tensord/model_management.pb.h"

namespace tensord::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace tf = ::tensorflow;

std::string Text(const absl::Status& status) { return std::string(base::Message(status)); }

const tensor::ModelSpec kAnswered{
    .name = "half", .version = 123, .version_label = "", .signature_name = "ignored"};

tf::serving::SignatureDefMap OneSignature() {
  tf::serving::SignatureDefMap map;
  tf::SignatureDef& def = (*map.mutable_signature_def())["serving_default"];
  def.set_method_name("tensorflow/serving/predict");
  tf::TensorInfo& x = (*def.mutable_inputs())["x"];
  x.set_name("x:0");
  x.set_dtype(tf::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(-1);
  tf::TensorInfo& y = (*def.mutable_outputs())["y"];
  y.set_name("y:0");
  y.set_dtype(tf::DT_STRING);
  y.mutable_tensor_shape()->set_unknown_rank(true);
  return map;
}

TEST(GetModelMetadata, AsksForTheOneFieldThereIs) {
  tf::serving::GetModelMetadataRequest request;
  EXPECT_EQ(Text(ParseGetModelMetadataRequest(request.SerializeAsString()).status()),
            "Missing ModelSpec");
  request.mutable_model_spec()->set_version_label("stable");
  EXPECT_THAT(Text(ParseGetModelMetadataRequest(request.SerializeAsString()).status()),
              HasSubstr("must specify at least one metadata_field"));
  request.add_metadata_field("weights");
  EXPECT_THAT(Text(ParseGetModelMetadataRequest(request.SerializeAsString()).status()),
              HasSubstr("Metadata field weights is not supported"));
  request.set_metadata_field(0, "signature_def");
  EXPECT_EQ(Text(ParseGetModelMetadataRequest(request.SerializeAsString()).status()),
            "ModelSpec has no name specified.");
  request.mutable_model_spec()->set_name("half");
  const auto spec = ParseGetModelMetadataRequest(request.SerializeAsString());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "half");
  EXPECT_EQ(spec->version_label, "stable");
  EXPECT_FALSE(spec->version.has_value());
}

TEST(GetModelMetadata, AnswersWithThePackedSignatures) {
  const auto bytes = EncodeGetModelMetadataResponse(kAnswered, OneSignature().SerializeAsString());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  tf::serving::GetModelMetadataResponse response;
  ASSERT_TRUE(response.ParseFromString(*bytes));
  EXPECT_EQ(response.model_spec().version().value(), 123);
  EXPECT_EQ(response.model_spec().signature_name(), "");
  tf::serving::SignatureDefMap map;
  ASSERT_TRUE(response.metadata().at("signature_def").UnpackTo(&map));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(map, OneSignature()));
}

TEST(GetModelMetadata, AWorkersMalformedSignaturesAreAnInternalError) {
  EXPECT_EQ(EncodeGetModelMetadataResponse(kAnswered, "\x0a\x7f").status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(PrintModelMetadata(kAnswered, "\x0a\x7f").status().code(), absl::StatusCode::kInternal);
}

TEST(GetModelMetadata, PrintsWithDefaultsAndProtoNames) {
  const auto text = PrintModelMetadata(kAnswered, OneSignature().SerializeAsString());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, R"({
"model_spec":{
 "name": "half",
 "signature_name": "",
 "version": "123"
}
,
"metadata": {"signature_def": {
 "signature_def": {
  "serving_default": {
   "inputs": {
    "x": {
     "dtype": "DT_FLOAT",
     "tensor_shape": {
      "dim": [
       {
        "size": "-1",
        "name": ""
       }
      ],
      "unknown_rank": false
     },
     "name": "x:0"
    }
   },
   "outputs": {
    "y": {
     "dtype": "DT_STRING",
     "tensor_shape": {
      "dim": [],
      "unknown_rank": true
     },
     "name": "y:0"
    }
   },
   "method_name": "tensorflow/serving/predict",
   "defaults": {}
  }
 }
}
}
}
)");
}

TEST(GetModelStatus, NeedsASpecButNoName) {
  EXPECT_EQ(Text(ParseGetModelStatusRequest("").status()), "Missing ModelSpec");
  tf::serving::GetModelStatusRequest request;
  request.mutable_model_spec()->mutable_version()->set_value(7);
  const auto spec = ParseGetModelStatusRequest(request.SerializeAsString());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->version, 7);
  EXPECT_THAT(Text(ParseGetModelStatusRequest("\x0a\x7f").status()),
              HasSubstr("not a tensorflow.serving.GetModelStatusRequest"));
}

const VersionStatus kVersions[] = {
    {.version = 2, .state = 30, .status = absl::OkStatus()},
    {.version = 1, .state = 50, .status = absl::NotFoundError("no file \xff\"x\"")}};

TEST(GetModelStatus, AnswersOneLineAVersion) {
  tf::serving::GetModelStatusResponse response;
  ASSERT_TRUE(response.ParseFromString(EncodeGetModelStatusResponse(kVersions)));
  ASSERT_EQ(response.model_version_status_size(), 2);
  EXPECT_EQ(response.model_version_status(0).version(), 2);
  EXPECT_EQ(response.model_version_status(0).state(), tf::serving::ModelVersionStatus::AVAILABLE);
  EXPECT_TRUE(response.model_version_status(0).has_status());
  EXPECT_EQ(response.model_version_status(1).status().error_code(), tf::error::NOT_FOUND);
  EXPECT_EQ(response.model_version_status(1).status().error_message(), "no file ?\"x\"");
}

TEST(GetModelStatus, PrintsWithDefaults) {
  EXPECT_EQ(*PrintModelStatus(kVersions), R"({
 "model_version_status": [
  {
   "version": "2",
   "state": "AVAILABLE",
   "status": {
    "error_code": "OK",
    "error_message": ""
   }
  },
  {
   "version": "1",
   "state": "END",
   "status": {
    "error_code": "NOT_FOUND",
    "error_message": "no file ?\"x\""
   }
  }
 ]
}
)");
}

TEST(ReloadConfig, TakesListsOnly) {
  tf::serving::ReloadConfigRequest request;
  EXPECT_THAT(Text(ParseReloadConfigRequest(request.SerializeAsString()).status()),
              HasSubstr("ServerModelConfig type not supported"));
  request.mutable_config()->mutable_custom_model_config();
  EXPECT_FALSE(ParseReloadConfigRequest(request.SerializeAsString()).ok());
  request.mutable_config()->mutable_model_config_list()->add_config()->set_name("m");
  request.add_metric_names("/a/b");
  const auto reload = ParseReloadConfigRequest(request.SerializeAsString());
  ASSERT_TRUE(reload.ok()) << reload.status();
  EXPECT_THAT(reload->metric_names, ElementsAre("/a/b"));
  tf::serving::ModelServerConfig config;
  ASSERT_TRUE(config.ParseFromString(reload->config));
  EXPECT_EQ(config.model_config_list().config(0).name(), "m");
}

TEST(ReloadConfig, AnswersStatusAndMetrics) {
  const std::pair<std::string, int64_t> increases[] = {{"/a/b", 4}};
  tf::serving::ReloadConfigResponse response;
  ASSERT_TRUE(response.ParseFromString(
      EncodeReloadConfigResponse(absl::FailedPreconditionError("label"), increases)));
  EXPECT_EQ(response.status().error_code(), tf::error::FAILED_PRECONDITION);
  EXPECT_EQ(response.status().error_message(), "label");
  EXPECT_EQ(response.metric(0).int64_value_increase(), 4);
}

TEST(HealthCheck, NamesAServiceAndSaysWhetherItServes) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("s");
  EXPECT_EQ(*ParseHealthCheckRequest(request.SerializeAsString()), "s");
  EXPECT_EQ(*ParseHealthCheckRequest(""), "");
  EXPECT_FALSE(ParseHealthCheckRequest("\x0a\x7f").ok());
  EXPECT_EQ(EncodeHealthCheckResponse(Health::kServing), "\x08\x01");
  EXPECT_EQ(EncodeHealthCheckResponse(Health::kNotServing), "\x08\x02");
  EXPECT_EQ(EncodeHealthCheckResponse(Health::kUnknownService), "\x08\x03");
  const std::pair<std::string, Health> services[] = {{"a", Health::kServing}};
  EXPECT_EQ(EncodeHealthListResponse(services), "\x0a\x07\x0a\x01\x61\x12\x02\x08\x01");
}

// The real files of tensorflow/serving, where they are at hand.
std::filesystem::path Fixtures() {
  const char* const set = std::getenv("TENSORD_FIXTURES");
  const std::filesystem::path root =
      set != nullptr ? set : TENSORD_SOURCE_DIR "/../shared/fixtures";
  return root / "tensorflow-serving";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// MetaGraphDef.signature_def, field 5, is the same map as SignatureDefMap's field 1.
std::string SignatureMapOf(std::string_view saved_model) {
  std::string map;
  for (base::WireReader model(saved_model); model.Next();) {
    if (model.field() != 2) continue;
    for (base::WireReader graph(model.bytes()); graph.Next();) {
      if (graph.field() == 5) base::AppendBytesField(1, graph.bytes(), &map);
    }
  }
  return map;
}

// Parsed, so that neither order nor indentation count. The golden file of the TF2 model is older
// than the model's default for x, and leaves out an empty "defaults": there, all are dropped.
google::protobuf::Struct Normalised(std::string_view json, bool without_defaults) {
  google::protobuf::Struct parsed;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(std::string(json), &parsed).ok());
  google::protobuf::Struct* signatures = &parsed;
  for (const char* name : {"metadata", "signature_def", "signature_def"}) {
    signatures = (*signatures->mutable_fields())[name].mutable_struct_value();
  }
  for (auto& [name, signature] : *signatures->mutable_fields()) {
    if (without_defaults) signature.mutable_struct_value()->mutable_fields()->erase("defaults");
  }
  return parsed;
}

TEST(GetModelMetadata, PrintsWhatTheOriginalsGoldenFilesHold) {
  const std::filesystem::path fixtures = Fixtures();
  if (!std::filesystem::exists(fixtures)) {
    GTEST_SKIP() << "no fixtures in " << fixtures << "; set TENSORD_FIXTURES";
  }
  const struct {
    const char* golden;
    const char* model;
    const char* name;
    bool without_defaults;
  } rows[] = {
      {"half_plus_two_model_metadata.json", "saved_model_half_plus_two_cpu/00000123", "default",
       false},
      {"saved_model_half_plus_two_2_versions_metadata.json",
       "saved_model_half_plus_two_2_versions/00000123", "saved_model_half_plus_two_2_versions",
       false},
      {"saved_model_half_plus_two_tf2_2_versions_metadata.json",
       "saved_model_half_plus_two_tf2_cpu/00000123", "saved_model_half_plus_two_2_versions", true},
  };
  for (const auto& row : rows) {
    const std::string map = SignatureMapOf(ReadFile(fixtures / row.model / "saved_model.pb"));
    ASSERT_FALSE(map.empty()) << row.model;
    const tensor::ModelSpec spec{
        .name = row.name, .version = 123, .version_label = "", .signature_name = ""};
    const auto text = PrintModelMetadata(spec, map);
    ASSERT_TRUE(text.ok()) << text.status();
    google::protobuf::util::MessageDifferencer differencer;
    std::string differences;
    differencer.ReportDifferencesToString(&differences);
    EXPECT_TRUE(
        differencer.Compare(Normalised(ReadFile(fixtures / row.golden), row.without_defaults),
                            Normalised(*text, row.without_defaults)))
        << row.golden << ":\n"
        << differences.substr(0, 2000);
  }
}

}  // namespace
}  // namespace tensord::wire
