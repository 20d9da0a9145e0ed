// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "predictor.h"

#include <cstring>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::peers {
namespace {

using tensor::DType;
using tensor::Tensor;

constexpr char kSignature[] = "serving_default";

class SessionRunner : public Runner {
 public:
  SessionRunner(std::unique_ptr<engine::Model> model, int signature)
      : model_(std::move(model)), signature_(signature) {}

  const tensor::Signature& signature() const override {
    return model_->signatures()[static_cast<size_t>(signature_)];
  }

  absl::StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> inputs) override {
    std::vector<tensor::TensorView> views;
    views.reserve(inputs.size());
    for (const Tensor& input : inputs) views.push_back(input.view());
    const std::unique_ptr<engine::Result> result = model_->Run(signature_, views);
    RETURN_IF_ERROR(result->status());
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < result->outputs().size(); ++i) {
      const engine::OutputInfo& info = result->outputs()[i];
      outputs.push_back({info.dtype, info.shape, tensor::Buffer(info.bytes)});
      result->Pack(i, outputs.back().buffer.bytes());
    }
    // Inputs that the runtime still holds would have to outlive this call; bench models keep none.
    result->Release();
    if (result->HoldsInputs()) return absl::InternalError("the runtime keeps inputs");
    return outputs;
  }

 private:
  const std::unique_ptr<engine::Model> model_;
  const int signature_;
};

template <typename Field>
absl::Status CopyValues(const Field& values, Tensor* tensor) {
  const std::span<std::byte> out = tensor->buffer.bytes();
  if (values.size() * sizeof(*values.data()) != out.size()) {
    return absl::InvalidArgumentError("another number of values than the shape has elements");
  }
  std::memcpy(out.data(), values.data(), out.size());
  return absl::OkStatus();
}

// The bench models' types only.
absl::StatusOr<Tensor> FromProto(const tensorflow::TensorProto& proto) {
  Tensor tensor;
  tensor.dtype = static_cast<DType>(proto.dtype());
  std::vector<int64_t> dims;
  for (const auto& dim : proto.tensor_shape().dim()) dims.push_back(dim.size());
  ASSIGN_OR_RETURN(tensor.shape, tensor::Shape::Make(dims));
  ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(tensor.dtype, tensor.shape));
  tensor.buffer = tensor::Buffer(bytes);
  absl::Status copied;
  if (!proto.tensor_content().empty() || bytes == 0) {
    copied = CopyValues(proto.tensor_content(), &tensor);
  } else if (tensor.dtype == DType::kFloat) {
    copied = CopyValues(proto.float_val(), &tensor);
  } else if (tensor.dtype == DType::kInt32) {
    copied = CopyValues(proto.int_val(), &tensor);
  } else if (tensor.dtype == DType::kInt64) {
    copied = CopyValues(proto.int64_val(), &tensor);
  } else {
    return absl::UnimplementedError("values of that type");
  }
  RETURN_IF_ERROR(copied);
  return tensor;
}

void ToProto(const Tensor& tensor, tensorflow::TensorProto* proto) {
  proto->set_dtype(static_cast<tensorflow::DataType>(tensor.dtype));
  for (const int64_t dim : tensor.shape.dims()) {
    proto->mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  const std::span<const std::byte> bytes = tensor.buffer.bytes();
  proto->set_tensor_content(bytes.data(), bytes.size());
}

// Zeros for every input; open dims but the first are 1.
absl::StatusOr<std::vector<Tensor>> Zeros(const tensor::Signature& signature, int64_t rows) {
  std::vector<Tensor> inputs;
  for (const tensor::Endpoint& endpoint : signature.inputs) {
    std::vector<int64_t> dims = endpoint.shape.dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < 0) dims[i] = i == 0 ? rows : 1;
    }
    Tensor input{.dtype = endpoint.dtype, .shape = {}, .buffer = {}};
    ASSIGN_OR_RETURN(input.shape, tensor::Shape::Make(dims));
    ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(input.dtype, input.shape));
    input.buffer = tensor::Buffer(bytes);
    std::memset(input.buffer.bytes().data(), 0, bytes);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// The first runs of a session prepare the graph and can take seconds: they come before clients do.
absl::Status WarmUp(Runner& runner) {
  for (const int64_t rows : {1, 1, 2}) {
    ASSIGN_OR_RETURN(std::vector<Tensor> inputs, Zeros(runner.signature(), rows));
    RETURN_IF_ERROR(runner.Run(std::move(inputs)).status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> LoadRunner(engine::Engine& engine,
                                                   const std::string& version_directory) {
  engine::LoadOptions options;
  options.directory = version_directory;
  options.tags = {"serve"};
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Model> model, engine.Load(options));
  const int signature = tensor::SignatureIndex(model->signatures(), kSignature);
  if (signature < 0) {
    return absl::NotFoundError(base::Cat(version_directory, " has no ", kSignature));
  }
  auto runner = std::make_unique<SessionRunner>(std::move(model), signature);
  RETURN_IF_ERROR(WarmUp(*runner));
  return runner;
}

absl::Status Predict(const Runners& runners, const tensorflow::serving::PredictRequest& request,
                     tensorflow::serving::PredictResponse* response) {
  const auto found = runners.find(request.model_spec().name());
  if (found == runners.end()) return absl::NotFoundError("no such model");
  const tensor::Signature& signature = found->second->signature();
  std::vector<Tensor> inputs;
  for (const tensor::Endpoint& endpoint : signature.inputs) {
    const auto input = request.inputs().find(endpoint.name);
    if (input == request.inputs().end()) {
      return absl::InvalidArgumentError(base::Cat("input ", endpoint.name, " is missing"));
    }
    ASSIGN_OR_RETURN(Tensor tensor, FromProto(input->second));
    inputs.push_back(std::move(tensor));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, found->second->Run(std::move(inputs)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    ToProto(outputs[i], &(*response->mutable_outputs())[signature.outputs[i].name]);
  }
  response->mutable_model_spec()->set_name(request.model_spec().name());
  response->mutable_model_spec()->set_signature_name(kSignature);
  response->mutable_model_spec()->mutable_version()->set_value(1);
  return absl::OkStatus();
}

}  // namespace tensord::peers
