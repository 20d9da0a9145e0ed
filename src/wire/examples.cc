// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/examples.h"

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/predict_encode.h"
#include "wire/predict_walk.h"

namespace tensord::wire {
namespace {

using base::WireReader;
using base::WireType;

absl::Status MalformedExample(std::string_view message) {
  return absl::InvalidArgumentError(
      base::Cat("the bytes are not a tensorflow.serving.", message, " message"));
}

absl::Status MissingName() {
  return absl::InvalidArgumentError("ModelSpec has no name specified.");
}

// Protobuf merges a message that comes in pieces; nobody sends many.
absl::Status AddPiece(std::string_view bytes, std::vector<std::string_view>* pieces) {
  if (pieces->size() == limits::kInputsMax) {
    return absl::InvalidArgumentError(
        base::Cat("the input comes in more than ", limits::kInputsMax, " pieces"));
  }
  pieces->push_back(bytes);
  return absl::OkStatus();
}

absl::StatusOr<InferenceTask> WalkTask(std::string_view bytes) {
  InferenceTask task;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) RETURN_IF_ERROR(MergeModelSpec(reader.bytes(), &task.spec));
    if (reader.field() == 2) task.method = reader.bytes();
  }
  if (!reader.ok()) return MalformedExample("InferenceTask");
  return task;
}

// The choice that Input makes, merged from all its pieces: of lists of one kind, each adds to the
// one before; another kind replaces them.
struct Choice {
  constexpr static uint32_t kNone = 0;
  constexpr static uint32_t kWithContext = 2;

  uint32_t kind = kNone;
  std::vector<std::string_view> lists;
};

absl::StatusOr<Choice> ReadChoice(std::span<const std::string_view> input) {
  Choice choice;
  for (const std::string_view piece : input) {
    WireReader reader(piece);
    while (reader.Next()) {
      const uint32_t field = reader.field();
      if (reader.type() != WireType::kBytes || field < 1 || field > 2) continue;
      if (field != choice.kind) choice.lists.clear();
      choice.kind = field;
      RETURN_IF_ERROR(AddPiece(reader.bytes(), &choice.lists));
    }
    if (!reader.ok()) return MalformedExample("Input");
  }
  return choice;
}

// Calls visit(field, bytes) for each example (1) and piece of context (2).
template <typename Visit>
absl::Status ForEachPart(const Choice& choice, Visit visit) {
  for (const std::string_view list : choice.lists) {
    WireReader reader(list);
    while (reader.Next()) {
      const bool context = choice.kind == Choice::kWithContext && reader.field() == 2;
      if (reader.type() == WireType::kBytes && (reader.field() == 1 || context)) {
        visit(reader.field(), reader.bytes());
      }
    }
    if (!reader.ok()) return MalformedExample("ExampleList");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InferenceRequest> WalkInference(std::string_view body) {
  InferenceRequest request;
  InferenceTask& task = request.tasks.emplace_back();
  bool has_spec = false;
  WireReader reader(body);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) {
      has_spec = true;
      RETURN_IF_ERROR(MergeModelSpec(reader.bytes(), &task.spec));
    } else if (reader.field() == 2) {
      RETURN_IF_ERROR(AddPiece(reader.bytes(), &request.input));
    }
  }
  if (!reader.ok()) return MalformedExample("ClassificationRequest or RegressionRequest");
  if (!has_spec) return absl::InvalidArgumentError("Missing ModelSpec");
  if (task.spec.name.empty()) return MissingName();
  return request;
}

absl::StatusOr<InferenceRequest> WalkMultiInference(std::string_view body) {
  InferenceRequest request;
  WireReader reader(body);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) {
      if (request.tasks.size() == limits::kSignaturesPerRunMax) {
        return absl::InvalidArgumentError(
            base::Cat("the request has more than ", limits::kSignaturesPerRunMax, " tasks"));
      }
      ASSIGN_OR_RETURN(InferenceTask task, WalkTask(reader.bytes()));
      request.tasks.push_back(std::move(task));
    } else if (reader.field() == 2) {
      RETURN_IF_ERROR(AddPiece(reader.bytes(), &request.input));
    }
  }
  if (!reader.ok()) return MalformedExample("MultiInferenceRequest");
  if (request.tasks.empty() || request.tasks.front().spec.name.empty()) return MissingName();
  return request;
}

absl::StatusOr<tensor::Tensor> ReadExamples(std::span<const std::string_view> input) {
  ASSIGN_OR_RETURN(const Choice choice, ReadChoice(input));
  uint64_t examples = 0;
  uint64_t example_bytes = 0;
  std::string context;
  RETURN_IF_ERROR(ForEachPart(choice, [&](uint32_t field, std::string_view bytes) {
    if (field == 2) {
      context += bytes;
    } else {
      ++examples;
      example_bytes += bytes.size();
    }
  }));
  ASSIGN_OR_RETURN(ExampleWriter writer, ExampleWriter::Make(examples, example_bytes, context));
  RETURN_IF_ERROR(ForEachPart(choice, [&](uint32_t field, std::string_view bytes) {
    if (field == 1) writer.Add(bytes);
  }));
  return std::move(writer).Take();
}

std::string EncodeInferenceRequest(const tensor::ModelSpec& asked,
                                   const tensor::PredictRequest& request) {
  const tensor::TensorView& examples = request.inputs.front().tensor;
  const auto reader =
      tensor::StringReader::Open(examples.bytes, static_cast<uint64_t>(examples.shape.elements()));
  std::string list;
  for (uint64_t i = 0; reader.ok() && i < reader->size(); ++i) {
    base::AppendBytesField(1, (*reader)[i], &list);
  }
  std::string input;
  base::AppendBytesField(1, list, &input);
  std::string out;
  base::AppendBytesField(1, EncodeModelSpec(asked), &out);
  base::AppendBytesField(2, input, &out);
  return out;
}

absl::StatusOr<ExampleWriter> ExampleWriter::Make(uint64_t examples, uint64_t example_bytes,
                                                  std::string_view context) {
  if (examples == 0) return absl::InvalidArgumentError("Input is empty.");
  if (context.size() > limits::kContextBytesMax / examples) {
    return absl::InvalidArgumentError(base::Cat(
        "a context of ", context.size(), " bytes before each of ", examples,
        " examples is more than ", limits::kContextBytesMax, " bytes; send fewer examples"));
  }
  const uint64_t bytes =
      tensor::PackedStringBytes(examples, example_bytes + examples * context.size());
  if (bytes > limits::kTensorBytesMax) {
    return absl::InvalidArgumentError(
        base::Cat("the examples need ", bytes, " bytes; the limit is ", limits::kTensorBytesMax));
  }
  return ExampleWriter(
      tensor::Tensor{
          tensor::DType::kString, {static_cast<int64_t>(examples)}, tensor::Buffer(bytes)},
      context);
}

void ExampleWriter::Add(std::string_view example) {
  if (context_.empty()) return writer_.Add(example);
  writer_.Add(base::Cat(context_, example));
}

}  // namespace tensord::wire
