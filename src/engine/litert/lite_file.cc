// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/lite_file.h"

#include <map>

#include "base/status_macros.h"
#include "base/text.h"
#include "engine/litert/runtime.h"
#include "engine/litert/signature_metadata.h"

namespace tensord::engine {
namespace {

constexpr size_t kCountMax = 4096;  // Of anything in one list; more is no model, but an attack.

// Calls one of LiteRT's functions that give a value.
template <typename Value, typename Function, typename... Arguments>
absl::StatusOr<Value> Get(Function function, Arguments... arguments) {
  Value value{};
  RETURN_IF_ERROR(ToStatus(function(arguments..., &value), "reading the model's description"));
  return value;
}

absl::StatusOr<size_t> Count(absl::StatusOr<size_t> count) {
  if (count.ok() && *count > kCountMax) {
    return absl::InvalidArgumentError(
        base::Cat("the model lists ", *count, " things of a kind; the limit is ", kCountMax));
  }
  return count;
}

std::string Text(const char* text) { return text == nullptr ? "" : text; }

class Reader {
 public:
  Reader(const LiteRtApi& api, LiteRtModel* model) : api_(api), model_(model) {}

  absl::StatusOr<LiteFile> Read() const {
    LiteFile file;
    ASSIGN_OR_RETURN(const size_t main, Get<size_t>(api_.LiteRtGetMainModelSubgraphIndex, model_));
    ASSIGN_OR_RETURN(LiteRtSubgraph* const main_subgraph,
                     Get<LiteRtSubgraph*>(api_.LiteRtGetModelSubgraph, model_, main));
    ASSIGN_OR_RETURN(const size_t count,
                     Count(Get<size_t>(api_.LiteRtGetNumModelSignatures, model_)));
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(LiteRtSignature* const signature,
                       Get<LiteRtSignature*>(api_.LiteRtGetModelSignature, model_, i));
      ASSIGN_OR_RETURN(LiteRunner runner, ReadRunner(signature, main_subgraph));
      file.runners.push_back(std::move(runner));
    }
    const void* metadata = nullptr;
    size_t bytes = 0;
    const LiteRtStatus found =
        api_.LiteRtGetModelMetadata(model_, kSignatureDefsMetadata, &metadata, &bytes);
    if (found == kLiteRtStatusOk && metadata != nullptr) {
      file.signature_metadata.assign(static_cast<const char*>(metadata), bytes);
    }
    return file;
  }

 private:
  using Names = std::map<const LiteRtTensor*, std::string>;

  absl::StatusOr<LiteRunner> ReadRunner(LiteRtSignature* signature,
                                        const LiteRtSubgraph* main) const {
    LiteRunner runner;
    ASSIGN_OR_RETURN(const char* const key,
                     Get<const char*>(api_.LiteRtGetSignatureKey, signature));
    runner.key = Text(key);
    ASSIGN_OR_RETURN(LiteRtSubgraph* const subgraph,
                     Get<LiteRtSubgraph*>(api_.LiteRtGetSignatureSubgraph, signature));
    runner.main = subgraph == main;
    ASSIGN_OR_RETURN(const Names inputs, InputNames(signature));
    ASSIGN_OR_RETURN(size_t count, Count(Get<size_t>(api_.LiteRtGetNumSubgraphInputs, subgraph)));
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(LiteRtTensor* const tensor,
                       Get<LiteRtTensor*>(api_.LiteRtGetSubgraphInput, subgraph, i));
      ASSIGN_OR_RETURN(LiteEndpoint input, ReadEndpoint(tensor, inputs));
      runner.inputs.push_back(std::move(input));
    }
    ASSIGN_OR_RETURN(const Names outputs, OutputNames(signature));
    ASSIGN_OR_RETURN(count, Count(Get<size_t>(api_.LiteRtGetNumSubgraphOutputs, subgraph)));
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(LiteRtTensor* const tensor,
                       Get<LiteRtTensor*>(api_.LiteRtGetSubgraphOutput, subgraph, i));
      ASSIGN_OR_RETURN(LiteEndpoint output, ReadEndpoint(tensor, outputs));
      runner.outputs.push_back(std::move(output));
    }
    ASSIGN_OR_RETURN(runner.ops, ReadOps(subgraph));
    return runner;
  }

  absl::StatusOr<Names> InputNames(LiteRtSignature* signature) const {
    return NamesOf(signature, api_.LiteRtGetNumSignatureInputs, api_.LiteRtGetSignatureInputName,
                   api_.LiteRtGetSignatureInputTensorByIndex);
  }

  absl::StatusOr<Names> OutputNames(LiteRtSignature* signature) const {
    return NamesOf(signature, api_.LiteRtGetNumSignatureOutputs, api_.LiteRtGetSignatureOutputName,
                   api_.LiteRtGetSignatureOutputTensorByIndex);
  }

  template <typename CountOf, typename NameOf, typename TensorOf>
  absl::StatusOr<Names> NamesOf(LiteRtSignature* signature, CountOf count_of, NameOf name_of,
                                TensorOf tensor_of) const {
    Names names;
    ASSIGN_OR_RETURN(const size_t count, Count(Get<size_t>(count_of, signature)));
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const char* const name, Get<const char*>(name_of, signature, i));
      ASSIGN_OR_RETURN(LiteRtTensor* const tensor, Get<LiteRtTensor*>(tensor_of, signature, i));
      names[tensor] = Text(name);
    }
    return names;
  }

  absl::StatusOr<LiteEndpoint> ReadEndpoint(LiteRtTensor* tensor, const Names& names) const {
    LiteEndpoint endpoint;
    ASSIGN_OR_RETURN(const char* const name, Get<const char*>(api_.LiteRtGetTensorName, tensor));
    endpoint.tensor.name = Text(name);
    endpoint.tensor.identity = tensor;
    const auto named = names.find(tensor);
    endpoint.name = named == names.end() ? endpoint.tensor.name : named->second;
    ASSIGN_OR_RETURN(const int kind, Get<int>(api_.LiteRtGetTensorTypeId, tensor));
    if (kind != kLiteRtRankedTensorTypeId) {
      ASSIGN_OR_RETURN(endpoint.tensor.type,
                       Get<int32_t>(api_.LiteRtGetUnrankedTensorType, tensor));
      return endpoint;
    }
    ASSIGN_OR_RETURN(const LiteRtRankedTensorType type,
                     Get<LiteRtRankedTensorType>(api_.LiteRtGetRankedTensorType, tensor));
    if (type.layout.rank > kLiteRtMaxRank) {
      return absl::InvalidArgumentError(base::Cat("tensor '", endpoint.tensor.name, "' has rank ",
                                                  uint32_t{type.layout.rank}, "; the limit is ",
                                                  kLiteRtMaxRank));
    }
    endpoint.tensor.type = type.element_type;
    endpoint.tensor.dims.emplace(type.layout.dimensions, type.layout.dimensions + type.layout.rank);
    return endpoint;
  }

  absl::StatusOr<std::vector<int>> ReadOps(LiteRtSubgraph* subgraph) const {
    std::vector<int> codes;
    ASSIGN_OR_RETURN(const size_t count, Get<size_t>(api_.LiteRtGetNumSubgraphOps, subgraph));
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(LiteRtOp* const op, Get<LiteRtOp*>(api_.LiteRtGetSubgraphOp, subgraph, i));
      ASSIGN_OR_RETURN(const int code, Get<int>(api_.LiteRtGetOpCode, op));
      codes.push_back(code);
    }
    return codes;
  }

  const LiteRtApi& api_;
  LiteRtModel* const model_;
};

}  // namespace

absl::StatusOr<LiteFile> ReadLiteFile(const LiteRtApi& api, LiteRtModel* model) {
  return Reader(api, model).Read();
}

}  // namespace tensord::engine
