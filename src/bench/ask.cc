// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/ask.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "bench/request.h"
#include "bench/tally.h"
#include "loop/event_loop.h"
#include "tensord/get_model_metadata.pb.h"
#include "tensord/open_inference.pb.h"
#include "wire/oip/datatype.h"
#include "wire/signatures.h"

namespace tensord::bench {
namespace {

namespace pb = google::protobuf;
namespace tfs = ::tensorflow::serving;

constexpr absl::Duration kAnswerMax = absl::Seconds(10);
constexpr size_t kModelsNamed = 20;

// Sends one request over a connection of its own. Threads: one.
class Question final : public Client::Listener {
 public:
  Question(loop::EventLoop& loop, const Address& address, bool rest, const Request& request)
      : loop_(loop), place_{.loop = loop, .address = address, .listener = *this} {
    call_.request = &request;
    call_.body = &reply_.body;
    client_ = rest ? MakeRestClient(place_, false) : MakeGrpcClient(place_);
  }

  absl::StatusOr<Reply> Run() {
    client_->Connect();
    const absl::Time end = loop_.ClockNow() + kAnswerMax;
    while (!done_ && loop_.ClockNow() < end) loop_.RunOnce(end);
    if (!done_) {
      return absl::UnavailableError(base::Cat(place_.address.name, " has not answered within ",
                                              absl::ToInt64Seconds(kAnswerMax), " s"));
    }
    if (!lost_.empty()) {
      return absl::UnavailableError(base::Cat("no answer from ", place_.address.name, ": ", lost_));
    }
    return std::move(reply_);
  }

 private:
  void OnUp(Client& client) override {
    up_ = true;
    client.Send(call_);
  }
  void OnDown(Client&, std::string_view why, bool) override {
    if (done_) return;
    done_ = true;
    lost_ = up_ ? std::string(why)
                : base::Cat("cannot connect (", why,
                            "): start the server, or give its --host and --port");
  }
  void OnAnswer(Call&, const Answer& answer) override {
    done_ = true;
    if (answer.code == kConnectionLost) lost_ = answer.words;
    reply_.ok = answer.ok;
    reply_.code = answer.code;
    reply_.words = answer.words;
  }
  void OnFree(Client&) override {}

  loop::EventLoop& loop_;
  ClientPlace place_;
  Reply reply_;
  Call call_;
  bool up_ = false;
  bool done_ = false;
  std::string lost_;
  std::unique_ptr<Client> client_;  // Last: goes first.
};

absl::StatusOr<pb::Struct> Parsed(std::string_view json) {
  pb::Struct document;
  if (!pb::util::JsonStringToMessage(std::string(json), &document).ok()) {
    return absl::InvalidArgumentError("the server's answer is not a JSON object");
  }
  return document;
}

// A member of a JSON object that is one itself; null when there is none.
const pb::Struct* Member(const pb::Struct& object, const char* name) {
  const auto at = object.fields().find(name);
  if (at == object.fields().end() || !at->second.has_struct_value()) return nullptr;
  return &at->second.struct_value();
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kModelsNamed; ++i) {
    text += base::Cat(i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kModelsNamed) text += base::Cat(" and ", names.size() - kModelsNamed, " more");
  return text;
}

absl::Status NotDescribed(const Address& address, bool rest, std::string_view model,
                          const Reply& reply) {
  return absl::NotFoundError(base::Cat("the server does not describe model '", model,
                                       "': ", CodeName(reply.code, rest), ": ",
                                       OneLine(reply.words), ModelsThere(address, rest)));
}

absl::StatusOr<tensor::SignatureList> AskOverGrpc(const Address& address, std::string_view model) {
  tfs::GetModelMetadataRequest question;
  question.mutable_model_spec()->set_name(std::string(model));
  question.add_metadata_field("signature_def");
  ASSIGN_OR_RETURN(
      const Reply reply,
      Ask(address, false,
          MakeGrpcRequest(address.name, "/tensorflow.serving.PredictionService/GetModelMetadata",
                          question.SerializeAsString(), {}, absl::InfiniteDuration(),
                          address.tls != nullptr)));
  if (!reply.ok) return NotDescribed(address, false, model, reply);
  tfs::GetModelMetadataResponse answer;
  if (!answer.ParseFromString(reply.body)) {
    return absl::InvalidArgumentError("the server's metadata cannot be read");
  }
  return wire::ParseSignatures((*answer.mutable_metadata())["signature_def"].value());
}

absl::StatusOr<tensor::SignatureList> AskOverRest(const Address& address, std::string_view model) {
  ASSIGN_OR_RETURN(
      const Reply reply,
      Ask(address, true,
          MakeRestRequest(address.name, "GET", base::Cat("/v1/models/", model, "/metadata"), "", {},
                          false)));
  if (!reply.ok) return NotDescribed(address, true, model, reply);
  return SignaturesOfJson(reply.body);
}

absl::StatusOr<tensor::Signature> SignatureOf(const inference::ModelMetadataResponse& metadata) {
  tensor::Signature signature;
  for (const auto& input : metadata.inputs()) {
    tensor::Endpoint endpoint;
    endpoint.name = input.name();
    endpoint.dtype = wire::OipDType(input.datatype());
    endpoint.shape.unknown_rank = false;
    endpoint.shape.dims.assign(input.shape().begin(), input.shape().end());
    signature.inputs.push_back(std::move(endpoint));
  }
  if (!signature.inputs.empty()) return signature;
  return absl::InvalidArgumentError(
      "the server's metadata has no inputs; give them: --input, once for each");
}

}  // namespace

absl::StatusOr<Reply> Ask(const Address& address, bool rest, const Request& request) {
  ASSIGN_OR_RETURN(std::unique_ptr<loop::EventLoop> loop, loop::EventLoop::Create());
  ASSIGN_OR_RETURN(Reply reply, Question(*loop, address, rest, request).Run());
  constexpr size_t kPrefixBytes = 5;
  if (!rest) reply.body.erase(0, kPrefixBytes);
  return reply;
}

absl::StatusOr<tensor::Signature> OipSignatureOfJson(std::string_view json) {
  inference::ModelMetadataResponse metadata;
  pb::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  if (!pb::util::JsonStringToMessage(std::string(json), &metadata, lenient).ok()) {
    return absl::InvalidArgumentError("the server's metadata is not a JSON object of a model");
  }
  return SignatureOf(metadata);
}

absl::StatusOr<tensor::Signature> AskForOipSignature(const Address& address, bool rest,
                                                     std::string_view model) {
  if (rest) {
    ASSIGN_OR_RETURN(
        const Reply reply,
        Ask(address, true,
            MakeRestRequest(address.name, "GET", base::Cat("/v2/models/", model), "", {}, false)));
    if (!reply.ok) return NotDescribed(address, true, model, reply);
    return OipSignatureOfJson(reply.body);
  }
  inference::ModelMetadataRequest question;
  question.set_name(std::string(model));
  ASSIGN_OR_RETURN(
      const Reply reply,
      Ask(address, false,
          MakeGrpcRequest(address.name, "/inference.GRPCInferenceService/ModelMetadata",
                          question.SerializeAsString(), {}, absl::InfiniteDuration(),
                          address.tls != nullptr)));
  if (!reply.ok) return NotDescribed(address, false, model, reply);
  inference::ModelMetadataResponse metadata;
  if (!metadata.ParseFromString(reply.body)) {
    return absl::InvalidArgumentError("the server's metadata cannot be read");
  }
  return SignatureOf(metadata);
}

absl::StatusOr<tensor::SignatureList> SignaturesOfJson(std::string_view json) {
  ASSIGN_OR_RETURN(const pb::Struct document, Parsed(json));
  const pb::Struct* metadata = Member(document, "metadata");
  const pb::Struct* map = metadata == nullptr ? nullptr : Member(*metadata, "signature_def");
  if (map == nullptr) {
    return absl::InvalidArgumentError("the server's metadata has no metadata.signature_def");
  }
  std::string text;
  tfs::SignatureDefMap signatures;
  pb::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  if (!pb::util::MessageToJsonString(*map, &text).ok() ||
      !pb::util::JsonStringToMessage(text, &signatures, lenient).ok()) {
    return absl::InvalidArgumentError("the server's metadata is no map of signatures");
  }
  return wire::ParseSignatures(signatures.SerializeAsString());
}

std::vector<std::string> ModelsOfJson(std::string_view json) {
  std::vector<std::string> names;
  const absl::StatusOr<pb::Struct> document = Parsed(json);
  if (!document.ok()) return names;
  const auto list = document->fields().find("models");
  if (list == document->fields().end()) return names;
  for (const pb::Value& model : list->second.list_value().values()) {
    const auto name = model.struct_value().fields().find("name");
    if (name != model.struct_value().fields().end()) names.push_back(name->second.string_value());
  }
  return names;
}

std::string ModelsThere(const Address& address, bool rest) {
  constexpr uint16_t kGrpcPort = 8500;
  constexpr uint16_t kRestPort = 8501;
  Address place = address;
  // Both families have the port at the same place.
  sockaddr_in head{};
  std::memcpy(&head, &place.bytes, sizeof(head));
  if (!rest && ntohs(head.sin_port) == kGrpcPort) {
    head.sin_port = htons(kRestPort);
    std::memcpy(&place.bytes, &head, sizeof(head));
  }
  const absl::StatusOr<Reply> reply =
      Ask(place, true, MakeRestRequest(place.name, "GET", "/v1/models", "", {}, false));
  if (!reply.ok() || !reply->ok) return "";
  const std::vector<std::string> names = ModelsOfJson(reply->body);
  return names.empty() ? "" : base::Cat("; the server has the models ", Joined(names));
}

absl::StatusOr<tensor::Signature> AskForSignature(const Address& address, bool rest,
                                                  std::string_view model,
                                                  std::string_view signature) {
  ASSIGN_OR_RETURN(tensor::SignatureList list,
                   rest ? AskOverRest(address, model) : AskOverGrpc(address, model));
  const int index = tensor::SignatureIndex(list, signature.empty() ? "serving_default" : signature);
  if (index >= 0) return std::move(list[static_cast<size_t>(index)]);
  std::vector<std::string> names;
  for (const tensor::Signature& known : list) names.push_back(known.name);
  return absl::NotFoundError(base::Cat("model '", model, "' has no signature '", signature,
                                       "'; give --signature, one of ", Joined(names)));
}

}  // namespace tensord::bench
