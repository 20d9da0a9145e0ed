// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/prepare.h"

#include <fstream>
#include <sstream>

#include "base/ascii.h"
#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/tf_record.h"
#include "bench/ask.h"
#include "bench/request.h"
#include "wire/warm_up_log.h"

namespace tensord::bench {
namespace {

constexpr uint64_t kFileBytesMax = 1ull << 31;  // What a server takes in one message.
constexpr size_t kRecordsMax = 100'000;
constexpr size_t kTriedMax = 100;
constexpr int kGrpcDeadlineExceeded = 4;
constexpr int kGrpcNotFound = 5;
constexpr int kHttpNotFound = 404;
constexpr int kHttpTimeout = 504;
constexpr std::string_view kService = "/tensorflow.serving.PredictionService/";

std::string Capitalised(std::string_view word) {
  std::string text(word);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return absl::NotFoundError("cannot be read");
  const auto size = static_cast<uint64_t>(file.tellg());
  if (size > kFileBytesMax) return absl::InvalidArgumentError("is larger than 2 GiB");
  file.seekg(0);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

bool IsRecordFile(std::string_view file) {
  return file.size() >= base::kTfRecordHeaderBytes &&
         base::TfRecordLength(file.substr(0, base::kTfRecordHeaderBytes)).has_value();
}

// The next record, taken off the front. REQUIRES: not empty.
absl::StatusOr<std::string_view> NextRecord(std::string_view* file) {
  const absl::Status cut = absl::InvalidArgumentError("is a TFRecord file, and damaged");
  if (!IsRecordFile(*file)) return cut;
  const uint64_t size = *base::TfRecordLength(file->substr(0, base::kTfRecordHeaderBytes));
  file->remove_prefix(base::kTfRecordHeaderBytes);
  if (file->size() < base::kTfRecordFooterBytes ||
      size > file->size() - base::kTfRecordFooterBytes) {
    return cut;
  }
  const std::string_view record = file->substr(0, size);
  file->remove_prefix(size);
  if (!base::TfRecordMatches(record, file->substr(0, base::kTfRecordFooterBytes))) return cut;
  file->remove_prefix(base::kTfRecordFooterBytes);
  return record;
}

// The gRPC method; empty for what no server has a method for.
std::string_view MethodOf(wire::WarmUpRecord::Kind kind) {
  using Kind = wire::WarmUpRecord::Kind;
  if (kind == Kind::kPredict) return "Predict";
  if (kind == Kind::kClassify) return "Classify";
  if (kind == Kind::kRegress) return "Regress";
  return kind == Kind::kMultiInference ? "MultiInference" : "";
}

absl::StatusOr<std::vector<Body>> BodiesOfRecords(std::string_view file) {
  std::vector<Body> bodies;
  while (!file.empty() && bodies.size() < kRecordsMax) {
    ASSIGN_OR_RETURN(const std::string_view bytes, NextRecord(&file));
    ASSIGN_OR_RETURN(const wire::WarmUpRecord record, wire::ParseWarmUpRecord(bytes));
    const std::string_view method = MethodOf(record.kind);
    if (!method.empty()) bodies.push_back({std::string(method), std::string(record.request)});
  }
  if (bodies.empty()) {
    return absl::InvalidArgumentError(
        "has no Predict, Classify, Regress or MultiInference request in its records");
  }
  return bodies;
}

HeaderList HeadersOf(const MixSettings& settings, const MixEntry& entry) {
  HeaderList headers = settings.headers;
  headers.insert(headers.end(), entry.headers.begin(), entry.headers.end());
  const std::string& criticality =
      entry.criticality.empty() ? settings.criticality : entry.criticality;
  if (!criticality.empty()) headers.emplace_back("tensord-criticality", criticality);
  return headers;
}

absl::StatusOr<std::vector<MadeInput>> InputsOf(const Address& address, const MixSettings& settings,
                                                const MixEntry& entry) {
  std::vector<MadeInput> inputs;
  for (const std::string& text : entry.inputs) {
    ASSIGN_OR_RETURN(MadeInput input, ParseInput(text));
    inputs.push_back(std::move(input));
  }
  if (!inputs.empty()) return inputs;
  if (settings.oip && !entry.signature.empty()) {
    return absl::InvalidArgumentError(
        "the Open Inference Protocol describes no signature but the default one: give --input");
  }
  ASSIGN_OR_RETURN(const tensor::Signature signature,
                   settings.oip
                       ? AskForOipSignature(address, settings.rest, entry.model)
                       : AskForSignature(address, settings.rest, entry.model, entry.signature));
  return MakeInputs(signature, settings.rows);
}

absl::StatusOr<std::string> BodyOf(const MixSettings& settings, const MixEntry& entry,
                                   const std::vector<MadeInput>& inputs) {
  if (settings.oip) {
    return settings.rest ? MakeOipJson(entry.signature, inputs)
                         : MakeOipRequest(entry.model, entry.signature, inputs);
  }
  return settings.rest ? MakePredictJson(entry.signature, inputs)
                       : MakePredictRequest(entry.model, entry.signature, inputs);
}

std::string PathOf(const MixSettings& settings, const MixEntry& entry, std::string_view method) {
  if (settings.oip) {
    return settings.rest ? base::Cat("/v2/models/", entry.model, "/infer")
                         : std::string("/inference.GRPCInferenceService/ModelInfer");
  }
  return settings.rest ? base::Cat("/v1/models/", entry.model, ":", entry.method)
                       : base::Cat(kService, method);
}

absl::StatusOr<std::vector<Body>> BodiesFor(const Address& address, const MixSettings& settings,
                                            const MixEntry& entry) {
  if (!entry.file.empty()) {
    absl::StatusOr<std::string> file = ReadWhole(entry.file);
    absl::StatusOr<std::vector<Body>> bodies =
        file.ok() ? BodiesOf(*file, Capitalised(entry.method), settings.rest) : file.status();
    if (bodies.ok()) return bodies;
    return base::WithContext(bodies.status(), base::Cat("file ", entry.file, " "));
  }
  if (settings.oip && entry.method != "predict") {
    return absl::InvalidArgumentError(
        base::Cat("the Open Inference Protocol has no call ", entry.method));
  }
  if (entry.method != "predict") {
    return absl::InvalidArgumentError(
        base::Cat("a ", entry.method, " request cannot be made up: give a file"));
  }
  ASSIGN_OR_RETURN(const std::vector<MadeInput> inputs, InputsOf(address, settings, entry));
  ASSIGN_OR_RETURN(std::string bytes, BodyOf(settings, entry, inputs));
  return std::vector<Body>{{"Predict", std::move(bytes)}};
}

absl::StatusOr<Kind> MakeKind(const Address& address, const MixSettings& settings,
                              const MixEntry& given) {
  MixEntry entry = given;
  if (entry.model.empty()) entry.model = entry.name;
  Kind kind{.name = entry.name,
            .weight = entry.weight,
            .deadline = entry.deadline.value_or(settings.deadline),
            .variants = {}};
  absl::StatusOr<std::vector<Body>> bodies = BodiesFor(address, settings, entry);
  if (!bodies.ok()) {
    return base::WithContext(bodies.status(), base::Cat("request '", entry.name, "': "));
  }
  const HeaderList headers = HeadersOf(settings, entry);
  for (const Body& body : *bodies) {
    const std::string path = entry.path.empty() ? PathOf(settings, entry, body.method) : entry.path;
    kind.variants.push_back(settings.rest ? MakeRestRequest(address.name, "POST", path, body.bytes,
                                                            headers, settings.one_shot)
                                          : MakeGrpcRequest(address.name, path, body.bytes, headers,
                                                            kind.deadline, address.tls != nullptr));
  }
  return kind;
}

}  // namespace

absl::StatusOr<std::vector<Body>> BodiesOf(std::string_view file, std::string_view method,
                                           bool rest) {
  const size_t first = file.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && (file[first] == '{' || file[first] == '[');
  if (IsRecordFile(file)) {
    if (rest) return absl::InvalidArgumentError("is a TFRecord file, which needs gRPC: no --rest");
    return BodiesOfRecords(file);
  }
  if (rest) {
    if (!json) return absl::InvalidArgumentError("is not a JSON document, which REST needs");
    return std::vector<Body>{{std::string(method), std::string(file)}};
  }
  if (json) return absl::InvalidArgumentError("is JSON: add --rest, or give a serialized request");
  base::WireReader reader(file);
  bool has_spec = false;
  while (reader.Next()) has_spec |= reader.field() == 1;
  if (!reader.ok() || !has_spec) {
    return absl::InvalidArgumentError(base::Cat("is neither a serialized ", method,
                                                "Request with a model_spec nor a TFRecord "
                                                "file"));
  }
  return std::vector<Body>{{std::string(method), std::string(file)}};
}

absl::StatusOr<Mix> MakeMix(const Address& address, const MixSettings& settings) {
  Mix mix;
  double weights = 0;
  for (const MixEntry& entry : settings.entries) {
    ASSIGN_OR_RETURN(Kind kind, MakeKind(address, settings, entry));
    weights += kind.weight;
    mix.kinds.push_back(std::move(kind));
  }
  if (weights <= 0) return absl::InvalidArgumentError("the mix has no request of weight above 0");
  return mix;
}

absl::Status TryEach(const Address& address, bool rest, const Mix& mix, uint64_t* sent) {
  for (size_t i = 0; i < mix.kinds.size() && i < kTriedMax; ++i) {
    const Kind& kind = mix.kinds[i];
    ASSIGN_OR_RETURN(const Reply reply, Ask(address, rest, kind.variants.front()));
    ++*sent;
    // A first run may be slow: that is no mistake of the user.
    const bool late = reply.code == (rest ? kHttpTimeout : kGrpcDeadlineExceeded);
    if (reply.ok || (late && kind.deadline != absl::InfiniteDuration())) continue;
    const bool unknown = reply.code == (rest ? kHttpNotFound : kGrpcNotFound);
    return absl::FailedPreconditionError(base::Cat(
        "request '", kind.name, "' fails before there is any load: ", CodeName(reply.code, rest),
        ": ", OneLine(reply.words), unknown ? ModelsThere(address, rest) : "",
        " (--try_first=false measures all the same)"));
  }
  return absl::OkStatus();
}

}  // namespace tensord::bench
