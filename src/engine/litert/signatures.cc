// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/signatures.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/litert/signature_metadata.h"
#include "engine/signature_def.h"

namespace tensord::engine {
namespace {

using base::AppendBytesField;
using base::AppendVarintField;
using base::WireReader;
using base::WireType;

constexpr std::string_view kDefaultKey = "serving_default";
constexpr std::string_view kPredict = "tensorflow/serving/predict";

// SignatureDef: inputs = 1, outputs = 2, method_name = 3.
constexpr uint32_t kInputs = 1;
constexpr uint32_t kOutputs = 2;
constexpr uint32_t kMethodName = 3;

// As converters before TensorFlow 2 cut it off.
std::string_view WithoutColon(std::string_view name) { return name.substr(0, name.find(':')); }

void AppendEntry(uint32_t field, std::string_view key, std::string_view value, std::string* out) {
  std::string entry;
  AppendBytesField(1, key, &entry);
  AppendBytesField(2, value, &entry);
  AppendBytesField(field, entry, out);
}

// TensorInfo: name = 1, dtype = 2, tensor_shape = 3. TensorShapeProto: dim = 2 (its size = 1),
// unknown_rank = 3.
absl::StatusOr<std::string> TensorInfo(std::string_view endpoint, const LiteTensor& tensor) {
  const tensor::DType dtype = ToDType(tensor.type);
  if (dtype == tensor::DType::kInvalid) {
    return absl::UnimplementedError(base::Cat("'", endpoint, "' has TensorFlow Lite's type number ",
                                              tensor.type, ", which clients cannot send or get"));
  }
  std::string shape;
  if (!tensor.dims.has_value()) AppendVarintField(3, 1, &shape);
  for (const int32_t size : tensor.dims.value_or(std::vector<int32_t>())) {
    std::string dim;
    AppendVarintField(1, static_cast<uint64_t>(int64_t{size < 0 ? -1 : size}), &dim);
    AppendBytesField(2, dim, &shape);
  }
  std::string info;
  AppendBytesField(1, tensor.name, &info);
  AppendVarintField(2, static_cast<uint64_t>(dtype), &info);
  AppendBytesField(3, shape, &info);
  return info;
}

absl::Status AppendEndpoints(uint32_t field, const std::map<std::string, LiteTensor>& endpoints,
                             std::string* signature_def) {
  for (const auto& [name, tensor] : endpoints) {
    ASSIGN_OR_RETURN(const std::string info, TensorInfo(name, tensor));
    AppendEntry(field, name, info, signature_def);
  }
  return absl::OkStatus();
}

absl::Status Twice(std::string_view what, std::string_view name) {
  return absl::InvalidArgumentError(
      base::Cat("two ", what, "s of the model have the name '", name, "'"));
}

// One signature, before it has a place in the list: names to numbers of the runner.
struct Named {
  size_t runner = 0;
  std::map<std::string, size_t> inputs;
  std::map<std::string, size_t> outputs;
  std::string method_name = std::string(kPredict);
};

absl::StatusOr<std::map<std::string, size_t>> NamesOf(const std::vector<LiteEndpoint>& endpoints,
                                                      bool by_tensor, std::string_view what) {
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    const std::string name =
        by_tensor ? std::string(WithoutColon(endpoints[i].tensor.name)) : endpoints[i].name;
    if (!names.emplace(name, i).second) return Twice(what, name);
  }
  return names;
}

absl::StatusOr<Named> OfRunner(const LiteFile& file, size_t number, bool by_tensor) {
  const LiteRunner& runner = file.runners[number];
  Named named;
  named.runner = number;
  ASSIGN_OR_RETURN(named.inputs, NamesOf(runner.inputs, by_tensor, "input"));
  ASSIGN_OR_RETURN(named.outputs, NamesOf(runner.outputs, by_tensor, "output"));
  return named;
}

std::optional<size_t> FindTensor(const std::vector<LiteEndpoint>& endpoints,
                                 std::string_view name) {
  for (const std::string_view tried : {name, WithoutColon(name)}) {
    for (size_t i = 0; i < endpoints.size(); ++i) {
      if (endpoints[i].tensor.name == tried) return i;
    }
  }
  return std::nullopt;
}

// An entry of SignatureDef's maps: a name and a TensorInfo, whose tensor is looked up.
absl::Status AddDeclared(std::string_view entry, std::string_view what,
                         const std::vector<LiteEndpoint>& endpoints,
                         std::map<std::string, size_t>* names) {
  std::string name;
  std::string tensor_name;
  WireReader reader(entry);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) name = reader.bytes();
    if (reader.field() != 2) continue;
    for (WireReader info(reader.bytes()); info.Next();) {
      if (info.field() == 1 && info.type() == WireType::kBytes) tensor_name = info.bytes();
    }
  }
  if (!reader.ok()) return absl::InvalidArgumentError("a signature in the metadata is malformed");
  const std::optional<size_t> number = FindTensor(endpoints, tensor_name);
  if (!number) {
    return absl::InvalidArgumentError(base::Cat(
        "signature ", what, " '", name, "' references an unknown tensor '", tensor_name, "'"));
  }
  (*names)[name] = *number;
  return absl::OkStatus();
}

absl::StatusOr<Named> OfMetadata(const LiteFile& file, std::string_view signature_def) {
  Named named;
  while (named.runner < file.runners.size() && !file.runners[named.runner].main) ++named.runner;
  if (named.runner == file.runners.size()) {
    return absl::InvalidArgumentError("no signature of the file runs its main graph");
  }
  const LiteRunner& runner = file.runners[named.runner];
  named.method_name.clear();
  WireReader reader(signature_def);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == kInputs) {
      RETURN_IF_ERROR(AddDeclared(reader.bytes(), "input", runner.inputs, &named.inputs));
    } else if (reader.field() == kOutputs) {
      RETURN_IF_ERROR(AddDeclared(reader.bytes(), "output", runner.outputs, &named.outputs));
    } else if (reader.field() == kMethodName) {
      named.method_name = reader.bytes();
    }
  }
  if (!reader.ok()) return absl::InvalidArgumentError("a signature in the metadata is malformed");
  const std::set<size_t> fed = [&] {
    std::set<size_t> numbers;
    for (const auto& [name, number] : named.inputs) numbers.insert(number);
    return numbers;
  }();
  if (fed.size() != runner.inputs.size() || named.inputs.size() != fed.size()) {
    return absl::InvalidArgumentError(base::Cat("it has ", named.inputs.size(),
                                                " inputs, but the graph needs each of its ",
                                                runner.inputs.size(), " once"));
  }
  return named;
}

absl::StatusOr<std::map<std::string, Named>> ChooseSignatures(const LiteFile& file) {
  std::map<std::string, Named> chosen;
  ASSIGN_OR_RETURN(const auto declared, ParseSignatureMetadata(file.signature_metadata));
  for (const auto& [key, signature_def] : declared) {
    absl::StatusOr<Named> named = OfMetadata(file, signature_def);
    RETURN_IF_ERROR(base::WithContext(named.status(), base::Cat("signature '", key, "': ")));
    chosen[key] = *std::move(named);
  }
  if (!chosen.empty()) return chosen;
  for (size_t i = 0; i < file.runners.size(); ++i) {
    const bool own = file.runners[i].key != kLiteRtNoSignature;
    const std::string key = own ? file.runners[i].key : std::string(kDefaultKey);
    absl::StatusOr<Named> named = OfRunner(file, i, !own);
    RETURN_IF_ERROR(base::WithContext(named.status(), base::Cat("signature '", key, "': ")));
    if (!chosen.emplace(key, *std::move(named)).second) return Twice("signature", key);
  }
  return chosen;
}

std::map<std::string, LiteTensor> TensorsOf(const std::map<std::string, size_t>& names,
                                            const std::vector<LiteEndpoint>& endpoints) {
  std::map<std::string, LiteTensor> tensors;
  for (const auto& [name, number] : names) tensors[name] = endpoints[number].tensor;
  return tensors;
}

absl::StatusOr<std::string> SignatureDefOf(const LiteFile& file, const Named& named) {
  const LiteRunner& runner = file.runners[named.runner];
  std::string signature_def;
  RETURN_IF_ERROR(AppendEndpoints(kInputs, TensorsOf(named.inputs, runner.inputs), &signature_def));
  RETURN_IF_ERROR(
      AppendEndpoints(kOutputs, TensorsOf(named.outputs, runner.outputs), &signature_def));
  AppendBytesField(kMethodName, named.method_name, &signature_def);
  return signature_def;
}

}  // namespace

absl::StatusOr<LiteSignatures> PlanSignatures(const LiteFile& file) {
  ASSIGN_OR_RETURN(const auto chosen, ChooseSignatures(file));
  if (chosen.empty()) return absl::InvalidArgumentError("the model has no graph");
  LiteSignatures plan;
  for (const auto& [key, named] : chosen) {
    absl::StatusOr<std::string> signature_def = SignatureDefOf(file, named);
    RETURN_IF_ERROR(
        base::WithContext(signature_def.status(), base::Cat("signature '", key, "': ")));
    AppendEntry(kSignatureDefMapField, key, *signature_def, &plan.signature_def_map);
  }
  ASSIGN_OR_RETURN(plan.list, ParseSignatureDefs(plan.signature_def_map, kSignatureDefMapField));
  for (const tensor::Signature& signature : plan.list) {
    const Named& named = chosen.at(signature.name);
    LiteBinding binding{.runner = named.runner, .inputs = {}, .outputs = {}};
    for (const tensor::Endpoint& input : signature.inputs) {
      binding.inputs.push_back(named.inputs.at(input.name));
    }
    for (const tensor::Endpoint& output : signature.outputs) {
      binding.outputs.push_back(named.outputs.at(output.name));
    }
    plan.bindings.push_back(std::move(binding));
  }
  return plan;
}

tensor::DType ToDType(int32_t lite_type) {
  using tensor::DType;
  static const std::map<int32_t, DType> kTypes = {
      {1, DType::kFloat},   {2, DType::kInt32},   {3, DType::kUint8},   {4, DType::kInt64},
      {5, DType::kString},  {6, DType::kBool},    {7, DType::kInt16},   {8, DType::kComplex64},
      {9, DType::kInt8},    {10, DType::kHalf},   {11, DType::kDouble}, {12, DType::kComplex128},
      {13, DType::kUint64}, {16, DType::kUint32}, {17, DType::kUint16}, {19, DType::kBfloat16},
  };
  const auto at = kTypes.find(lite_type);
  return at == kTypes.end() ? DType::kInvalid : at->second;
}

std::string LiteStatefulReason(const LiteFile& file) {
  // Operations with variables of their own that outlive a run, and the one that writes others'.
  static const std::map<int, std::string_view> kWriters = {
      {16, "LSTM"},
      {24, "RNN"},
      {27, "SVDF"},
      {35, "UNIDIRECTIONAL_SEQUENCE_RNN"},
      {44, "UNIDIRECTIONAL_SEQUENCE_LSTM"},
      {46, "BIDIRECTIONAL_SEQUENCE_RNN"},
      {52, "BIDIRECTIONAL_SEQUENCE_LSTM"},
      {144, "ASSIGN_VARIABLE"},
  };
  for (const LiteRunner& runner : file.runners) {
    for (const int op : runner.ops) {
      const auto writer = kWriters.find(op);
      if (writer == kWriters.end()) continue;
      return base::Cat(writer->second, " in signature '",
                       runner.key == kLiteRtNoSignature ? kDefaultKey : runner.key, "'");
    }
  }
  return "";
}

}  // namespace tensord::engine
