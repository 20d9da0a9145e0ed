// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/reflection.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <gtest/gtest.h>

#include "tensord/reflection_v1.pb.h"

namespace tensord::wire {
namespace {

namespace pb = ::google::protobuf;
using ::grpc::reflection::v1::ServerReflectionRequest;
using ::grpc::reflection::v1::ServerReflectionResponse;
using ::testing::ElementsAre;

ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
  const absl::StatusOr<std::string> bytes = AnswerReflection(request.SerializeAsString());
  EXPECT_TRUE(bytes.ok());
  ServerReflectionResponse response;
  EXPECT_TRUE(response.ParseFromString(*bytes));
  return response;
}

ServerReflectionRequest Symbol(const std::string& name) {
  ServerReflectionRequest request;
  request.set_file_containing_symbol(name);
  return request;
}

TEST(Reflection, ListsTheServicesThatAreServed) {
  ServerReflectionRequest request;
  request.set_list_services("");
  request.set_host("somewhere");
  const ServerReflectionResponse response = Ask(request);
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(
      names,
      ElementsAre("grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                  "grpc.reflection.v1alpha.ServerReflection", "inference.GRPCInferenceService",
                  "tensorflow.serving.ModelService", "tensorflow.serving.PredictionService"));
  EXPECT_EQ(response.valid_host(), "somewhere");
  EXPECT_EQ(response.original_request().host(), "somewhere");
}

// What a tool does: it builds what it got, and nothing may be missing.
TEST(Reflection, AFileComesWithEverythingItImports) {
  for (const char* name : {"tensorflow.serving.PredictionService", "tensorflow.TensorProto",
                           "tensorflow.serving.ModelService.GetModelStatus",
                           "grpc.health.v1.HealthCheckResponse.ServingStatus"}) {
    const ServerReflectionResponse response = Ask(Symbol(name));
    pb::SimpleDescriptorDatabase database;
    for (const std::string& file : response.file_descriptor_response().file_descriptor_proto()) {
      pb::FileDescriptorProto proto;
      ASSERT_TRUE(proto.ParseFromString(file));
      ASSERT_TRUE(database.Add(proto));
    }
    pb::DescriptorPool pool(&database);
    EXPECT_NE(pool.FindFileContainingSymbol(name), nullptr) << name;
  }
}

TEST(Reflection, WhatDoesNotExistIsSaidToBeMissing) {
  EXPECT_EQ(Ask(Symbol("no.such.Thing")).error_response().error_code(), 5);
  ServerReflectionRequest request;
  request.set_file_by_filename("none.proto");
  EXPECT_EQ(Ask(request).error_response().error_message(), "File not found.");
  request.set_all_extension_numbers_of_type("none");
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
  request.mutable_file_containing_extension()->set_containing_type("none");
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
  EXPECT_EQ(Ask({}).error_response().error_code(), 3);
}

TEST(Reflection, OurMessagesHaveNoExtensions) {
  ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("tensorflow.TensorProto");
  const ServerReflectionResponse response = Ask(request);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(), "tensorflow.TensorProto");
  EXPECT_TRUE(response.all_extension_numbers_response().extension_number().empty());
}

TEST(Reflection, BrokenBytesAreRefused) {
  EXPECT_EQ(AnswerReflection("\xff\xff").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tensord::wire
