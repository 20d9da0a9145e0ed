// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/litert/runtime.h"
#include "engine/litert/strings.h"

namespace tensord::engine {

// A tensor's memory for one run.
struct Interpreter::Memory {
  LiteRtRankedTensorType type;
  std::shared_ptr<tensor::Buffer> buffer;
  const void* identity = nullptr;  // LiteTensor's.
};

namespace {

// Kernels may read a little beyond a tensor's end.
constexpr uint64_t kSlackBytes = 64;
// A string output's size is not known before the run; one that does not fit is run again.
constexpr uint64_t kStringBytesFirst = 64 << 10;
constexpr uint64_t kStringBytesGrowth = 16;

// LiteRtTensorBuffers for one call.
class Handles {
 public:
  explicit Handles(const LiteRtApi* api) : api_(api) {}
  ~Handles() {
    for (LiteRtTensorBuffer* handle : all_) api_->LiteRtDestroyTensorBuffer(handle);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  absl::Status Add(const LiteRtRankedTensorType& type, std::span<std::byte> bytes) {
    LiteRtTensorBuffer* handle = nullptr;
    RETURN_IF_ERROR(ToStatus(api_->LiteRtCreateTensorBufferFromHostMemory(
                                 &type, bytes.data(), bytes.size(), nullptr, &handle),
                             "giving a tensor its memory"));
    all_.push_back(handle);
    return absl::OkStatus();
  }
  LiteRtTensorBuffer** data() { return all_.data(); }
  size_t size() const { return all_.size(); }

 private:
  const LiteRtApi* const api_;
  std::vector<LiteRtTensorBuffer*> all_;
};

absl::StatusOr<LiteRtRankedTensorType> TypeOf(int32_t element_type, const tensor::Shape& shape) {
  LiteRtRankedTensorType type = {};
  type.element_type = element_type;
  type.layout.rank = static_cast<uint32_t>(shape.rank()) & 0x7f;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t dim = shape.dim(i);
    if (dim <= 0 || dim > INT32_MAX) {
      return absl::InvalidArgumentError(base::Cat("shape ", shape.ToString(),
                                                  "; TensorFlow Lite takes no tensor without "
                                                  "elements, and no dim of 32 bits or more"));
    }
    type.layout.dimensions[i] = static_cast<int32_t>(dim);
  }
  return type;
}

absl::StatusOr<tensor::Shape> ShapeOf(const LiteRtLayout& layout) {
  if (layout.rank > limits::kRankMax) {
    return absl::UnimplementedError(
        base::Cat("rank ", uint32_t{layout.rank}, "; the limit is ", limits::kRankMax));
  }
  const std::vector<int64_t> dims(layout.dimensions, layout.dimensions + layout.rank);
  return tensor::Shape::Make(dims);
}

// A copy: LiteRT takes memory that may be written, and reads beyond its end.
absl::StatusOr<std::shared_ptr<tensor::Buffer>> CopyOf(const tensor::TensorView& view) {
  if (view.dtype == tensor::DType::kString) {
    ASSIGN_OR_RETURN(
        const tensor::StringReader strings,
        tensor::StringReader::Open(view.bytes, static_cast<uint64_t>(view.shape.elements())));
    ASSIGN_OR_RETURN(tensor::Buffer packed, ToLiteStrings(strings));
    return std::make_shared<tensor::Buffer>(std::move(packed));
  }
  ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(view.dtype, view.shape));
  if (bytes != view.bytes.size()) {
    return absl::InvalidArgumentError(base::Cat("shape ", view.shape.ToString(), " needs ", bytes,
                                                " bytes, not ", view.bytes.size()));
  }
  auto copy = std::make_shared<tensor::Buffer>(bytes + kSlackBytes);
  if (bytes > 0) std::memcpy(copy->bytes().data(), view.bytes.data(), bytes);
  return copy;
}

bool HasStrings(const LiteRunner& runner) {
  return std::ranges::any_of(runner.outputs, [](const LiteEndpoint& output) {
    return ToDType(output.tensor.type) == tensor::DType::kString;
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Interpreter>> Interpreter::Make(const LiteProgram& program) {
  const LiteRtApi& api = *program.api;
  LiteRtOptions* made = nullptr;
  RETURN_IF_ERROR(ToStatus(api.LiteRtCreateOptions(&made), "making options"));
  const std::unique_ptr<LiteRtOptions, void (*)(LiteRtOptions*)> options(made,
                                                                         api.LiteRtDestroyOptions);
  RETURN_IF_ERROR(
      ToStatus(api.LiteRtSetOptionsHardwareAccelerators(options.get(), kLiteRtHwAcceleratorCpu),
               "choosing the CPU"));
  // Errors are kept for us to read; a run stays in its thread, as in the original.
  constexpr std::pair<const char*, const char*> kSettings[] = {
      {"runtime_options_string", "error_reporter_mode = 2\n"}, {"xnnpack", "num_threads = 1\n"}};
  for (const auto& [identifier, text] : kSettings) {
    LiteRtOpaqueOptions* setting = nullptr;
    RETURN_IF_ERROR(
        ToStatus(api.LiteRtCreateOpaqueOptions(identifier, strdup(text), std::free, &setting),
                 "making options"));
    RETURN_IF_ERROR(
        ToStatus(api.LiteRtAddOpaqueOptions(options.get(), setting), "setting options"));
  }
  LiteRtCompiledModel* compiled = nullptr;
  const LiteRtStatus status =
      api.LiteRtCreateCompiledModel(program.environment, program.model, options.get(), &compiled);
  if (status != kLiteRtStatusOk) {
    return absl::InvalidArgumentError(base::Cat(
        "no interpreter could be made for the model (LiteRT's error ", static_cast<int>(status),
        "; the worker's log lines say more). It may use operations that are not built "
        "in, as those of TensorFlow are not"));
  }
  return std::unique_ptr<Interpreter>(new Interpreter(&program, compiled));
}

Interpreter::~Interpreter() { program_->api->LiteRtDestroyCompiledModel(compiled_); }

absl::Status Interpreter::Explain(LiteRtStatus status, std::string_view what) const {
  if (status == kLiteRtStatusOk) return absl::OkStatus();
  char* made = nullptr;
  const LiteRtStatus got = program_->api->LiteRtCompiledModelGetErrorMessages(compiled_, &made);
  const std::unique_ptr<char, void (*)(void*)> kept(made, std::free);
  std::string words = got == kLiteRtStatusOk && kept != nullptr ? kept.get() : "";
  program_->api->LiteRtCompiledModelClearErrors(compiled_);
  if (words.find("tensor->allocation_type == kTfLiteArenaRw") != std::string::npos) {
    return absl::UnimplementedError(
        base::Cat(what,
                  ": the shape of an output depends on the values of the inputs, and LiteRT "
                  "gives out no such tensors of numbers"));
  }
  std::replace(words.begin(), words.end(), '\n', ';');
  if (words.empty()) words = base::Cat("LiteRT's error ", static_cast<int>(status));
  return absl::InvalidArgumentError(base::Cat(what, ": ", words));
}

absl::StatusOr<std::vector<LiteRtLayout>> Interpreter::Layouts(size_t number, bool allocate) const {
  std::vector<LiteRtLayout> layouts(program_->file.runners[number].outputs.size());
  const LiteRtStatus status = program_->api->LiteRtGetCompiledModelOutputTensorLayouts(
      compiled_, number, layouts.size(), layouts.data(), allocate);
  RETURN_IF_ERROR(Explain(status, "these shapes do not fit the model"));
  return layouts;
}

// Copies the inputs, and resizes the model's to them.
absl::Status Interpreter::Feed(const tensor::Signature& signature, const LiteBinding& binding,
                               std::span<const tensor::TensorView> inputs,
                               std::vector<Memory>* fed) {
  const LiteRunner& runner = program_->file.runners[binding.runner];
  fed->resize(runner.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t number = binding.inputs[i];
    const LiteTensor& wanted = runner.inputs[number].tensor;
    const auto context = [&](const absl::Status& status) {
      return base::WithContext(status, base::Cat("input '", signature.inputs[i].name, "': "));
    };
    if (ToDType(wanted.type) != inputs[i].dtype) {
      return context(absl::InvalidArgumentError(
          base::Cat("came as ", tensor::DTypeName(inputs[i].dtype), ", the model takes ",
                    tensor::DTypeName(ToDType(wanted.type)))));
    }
    const absl::StatusOr<LiteRtRankedTensorType> type = TypeOf(wanted.type, inputs[i].shape);
    if (!type.ok()) return context(type.status());
    absl::StatusOr<std::shared_ptr<tensor::Buffer>> copy = CopyOf(inputs[i]);
    if (!copy.ok()) return context(copy.status());
    const int rank = inputs[i].shape.rank();
    if (rank > 0) {
      RETURN_IF_ERROR(context(Explain(program_->api->LiteRtCompiledModelResizeInputTensorNonStrict(
                                          compiled_, binding.runner, number,
                                          type->layout.dimensions, static_cast<size_t>(rank)),
                                      "its shape does not fit the model")));
    } else if (wanted.dims.has_value() && !wanted.dims->empty()) {
      return context(absl::InvalidArgumentError(
          base::Cat("came as a scalar, the model takes a tensor of rank ", wanted.dims->size())));
    }
    (*fed)[number] = {.type = *type, .buffer = *std::move(copy), .identity = wanted.identity};
  }
  return absl::OkStatus();
}

// Memory for the outputs. A tensor that is an input or another output, too, has only one.
absl::StatusOr<std::vector<Interpreter::Memory>> Interpreter::MakeRoom(
    const LiteRunner& runner, size_t number, const std::vector<Memory>& fed,
    uint64_t string_bytes) {
  ASSIGN_OR_RETURN(const std::vector<LiteRtLayout> layouts, Layouts(number, /*allocate=*/true));
  std::vector<Memory> room;
  for (size_t i = 0; i < layouts.size(); ++i) {
    const LiteTensor& tensor = runner.outputs[i].tensor;
    const auto same = [&](const Memory& memory) { return memory.identity == tensor.identity; };
    if (const auto at = std::ranges::find_if(fed, same); at != fed.end()) {
      room.push_back(*at);
      continue;
    }
    if (const auto at = std::ranges::find_if(room, same); at != room.end()) {
      const Memory again = *at;
      room.push_back(again);
      continue;
    }
    const tensor::DType dtype = ToDType(tensor.type);
    uint64_t bytes = string_bytes;
    if (dtype != tensor::DType::kString) {
      ASSIGN_OR_RETURN(const tensor::Shape shape, ShapeOf(layouts[i]));
      ASSIGN_OR_RETURN(bytes, tensor::FixedBytes(dtype, shape));
      bytes += kSlackBytes;
    }
    Memory memory{
        .type = {}, .buffer = std::make_shared<tensor::Buffer>(bytes), .identity = tensor.identity};
    memory.type.element_type = tensor.type;
    memory.type.layout = layouts[i];
    room.push_back(std::move(memory));
  }
  return room;
}

absl::Status Interpreter::Invoke(size_t number, const std::vector<Memory>& fed,
                                 const std::vector<Memory>& room) {
  Handles inputs(program_->api);
  Handles outputs(program_->api);
  for (const Memory& memory : fed) {
    RETURN_IF_ERROR(inputs.Add(memory.type, memory.buffer->bytes()));
  }
  for (const Memory& memory : room) {
    RETURN_IF_ERROR(outputs.Add(memory.type, memory.buffer->bytes()));
  }
  return Explain(
      program_->api->LiteRtRunCompiledModel(compiled_, number, inputs.size(), inputs.data(),
                                            outputs.size(), outputs.data()),
      "the run failed");
}

absl::Status Interpreter::Collect(const tensor::Signature& signature, const LiteBinding& binding,
                                  const std::vector<Memory>& room,
                                  std::vector<LiteOutput>* outputs) const {
  ASSIGN_OR_RETURN(const std::vector<LiteRtLayout> layouts,
                   Layouts(binding.runner, /*allocate=*/false));
  for (size_t i = 0; i < binding.outputs.size(); ++i) {
    const Memory& memory = room[binding.outputs[i]];
    LiteOutput output;
    output.info.dtype = ToDType(memory.type.element_type);
    ASSIGN_OR_RETURN(output.info.shape, ShapeOf(layouts[binding.outputs[i]]));
    const auto elements = static_cast<uint64_t>(output.info.shape.elements());
    output.bytes = memory.buffer;
    if (output.info.dtype == tensor::DType::kString) {
      ASSIGN_OR_RETURN(output.strings, FromLiteStrings(output.bytes->bytes(), elements));
      uint64_t payload = 0;
      for (const std::string_view text : output.strings) payload += text.size();
      output.info.bytes = tensor::PackedStringBytes(elements, payload);
    } else {
      ASSIGN_OR_RETURN(output.info.bytes, tensor::FixedBytes(output.info.dtype, output.info.shape));
      if (output.info.bytes > memory.buffer->size()) {
        return absl::InternalError(base::Cat("output '", signature.outputs[i].name,
                                             "' grew during the run to shape ",
                                             output.info.shape.ToString()));
      }
    }
    outputs->push_back(std::move(output));
  }
  return absl::OkStatus();
}

// LiteRT lets an operation that reads a variable put its output elsewhere than it was told, and
// says so only when it next looks at its tensors: what came out then is not the output.
absl::Status Interpreter::CheckWritten(size_t number) {
  if (checked_.contains(number)) return absl::OkStatus();
  const absl::Status looked = Layouts(number, /*allocate=*/true).status();
  if (!looked.ok()) {
    return absl::UnimplementedError(
        base::Cat("an output of the model comes straight from a variable, and LiteRT does not give "
                  "out such tensors; let the model compute something with it (",
                  base::Message(looked), ")"));
  }
  const std::vector<int>& ops = program_->file.runners[number].ops;
  const bool varies = std::ranges::any_of(ops, [](int op) {
    constexpr int kIf = 118;
    constexpr int kWhile = 119;
    constexpr int kReadVariable = 143;
    return op == kIf || op == kWhile || op == kReadVariable;
  });
  if (!varies) checked_.insert(number);
  return absl::OkStatus();
}

absl::Status Interpreter::Run(const tensor::Signature& signature, const LiteBinding& binding,
                              std::span<const tensor::TensorView> inputs,
                              std::vector<LiteOutput>* outputs) {
  const LiteRunner& runner = program_->file.runners[binding.runner];
  const bool strings = HasStrings(runner);
  uint64_t string_bytes = kStringBytesFirst;
  for (const tensor::TensorView& input : inputs) string_bytes += 2 * input.bytes.size();
  while (true) {
    // Anew for each try: an input that is an output, too, may have been written.
    std::vector<Memory> fed;
    RETURN_IF_ERROR(Feed(signature, binding, inputs, &fed));
    ASSIGN_OR_RETURN(const std::vector<Memory> room,
                     MakeRoom(runner, binding.runner, fed, string_bytes));
    absl::Status run = Invoke(binding.runner, fed, room);
    if (run.ok()) {
      RETURN_IF_ERROR(Collect(signature, binding, room, outputs));
      return CheckWritten(binding.runner);
    }
    string_bytes *= kStringBytesGrowth;
    // LiteRT does not say that the strings did not fit, but in its log.
    if (!strings || string_bytes > limits::kTensorBytesMax) return run;
  }
}

}  // namespace tensord::engine
