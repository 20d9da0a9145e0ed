// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <map>
#include <set>

#include "base/check.h"
#include "tensord/reflection_v1.pb.h"
#include "wire/chars.h"

namespace tensord::wire {

// Made by the build (proto/CMakeLists.txt): a FileDescriptorSet.
extern const unsigned char kServedDescriptors[];
extern const unsigned long kServedDescriptorsBytes;

namespace {

namespace pb = ::google::protobuf;
namespace reflection = ::grpc::reflection::v1;

// What is served, as descriptors, and each file's bytes as the build made them.
struct Served {
  pb::DescriptorPool pool;
  std::map<std::string, std::string, std::less<>> files;
  std::set<std::string> services;
};

const Served& TheServed() {
  static const Served* const served = [] {
    auto made = std::make_unique<Served>();
    pb::FileDescriptorSet set;
    TENSORD_CHECK(
        set.ParseFromArray(kServedDescriptors, static_cast<int>(kServedDescriptorsBytes)));
    for (const pb::FileDescriptorProto& file : set.file()) {
      made->files[file.name()] = file.SerializeAsString();
      const pb::FileDescriptor* const built = made->pool.BuildFile(file);
      TENSORD_CHECK(built != nullptr);
      for (int i = 0; i < built->service_count(); ++i) {
        made->services.insert(built->service(i)->full_name());
      }
    }
    return made.release();
  }();
  return *served;
}

void SetError(int code, const char* words, reflection::ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(words);
}

constexpr int kNotFound = 5;
constexpr int kInvalidArgument = 3;

void AddFiles(const pb::FileDescriptor* file, std::set<std::string>* seen,
              reflection::FileDescriptorResponse* files) {
  if (!seen->insert(file->name()).second) return;
  files->add_file_descriptor_proto(TheServed().files.at(file->name()));
  for (int i = 0; i < file->dependency_count(); ++i) AddFiles(file->dependency(i), seen, files);
}

// `missing`: what to say when there is no such file.
void SetFile(const pb::FileDescriptor* file, const char* missing,
             reflection::ServerReflectionResponse* response) {
  if (file == nullptr) return SetError(kNotFound, missing, response);
  std::set<std::string> seen;
  AddFiles(file, &seen, response->mutable_file_descriptor_response());
}

// None of our messages is extended; those of protobuf itself can be.
const pb::FileDescriptor* FindExtension(const reflection::ExtensionRequest& wanted) {
  const pb::DescriptorPool& pool = TheServed().pool;
  const pb::Descriptor* const type = pool.FindMessageTypeByName(wanted.containing_type());
  if (type == nullptr) return nullptr;
  const auto* const field = pool.FindExtensionByNumber(type, wanted.extension_number());
  return field == nullptr ? nullptr : field->file();
}

void SetExtensionNumbers(const std::string& name, reflection::ServerReflectionResponse* response) {
  const pb::DescriptorPool& pool = TheServed().pool;
  const pb::Descriptor* const type = pool.FindMessageTypeByName(name);
  if (type == nullptr) return SetError(kNotFound, "Type not found.", response);
  auto* const numbers = response->mutable_all_extension_numbers_response();
  numbers->set_base_type_name(name);
  std::vector<const pb::FieldDescriptor*> fields;
  pool.FindAllExtensions(type, &fields);
  for (const pb::FieldDescriptor* field : fields) numbers->add_extension_number(field->number());
}

}  // namespace

absl::StatusOr<std::string> AnswerReflection(std::string_view request) {
  reflection::ServerReflectionResponse response;
  reflection::ServerReflectionRequest& asked = *response.mutable_original_request();
  if (!asked.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
    return absl::InvalidArgumentError("the message is no ServerReflectionRequest");
  }
  response.set_valid_host(asked.host());
  using Request = reflection::ServerReflectionRequest;
  const pb::DescriptorPool& pool = TheServed().pool;
  switch (asked.message_request_case()) {
    case Request::kFileByFilename:
      SetFile(pool.FindFileByName(asked.file_by_filename()), "File not found.", &response);
      break;
    case Request::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(asked.file_containing_symbol()), "Symbol not found.",
              &response);
      break;
    case Request::kFileContainingExtension:
      SetFile(FindExtension(asked.file_containing_extension()), "Extension not found.", &response);
      break;
    case Request::kAllExtensionNumbersOfType:
      SetExtensionNumbers(asked.all_extension_numbers_of_type(), &response);
      break;
    case Request::kListServices:
      for (const std::string& service : TheServed().services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      SetError(kInvalidArgument, "the request asks nothing", &response);
      break;
  }
  return response.SerializeAsString();
}

}  // namespace tensord::wire
