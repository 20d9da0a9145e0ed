// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/load.h"

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/litert/interpreter.h"
#include "engine/litert/signatures.h"
#include "tensor/string_layout.h"

namespace tensord::engine {
namespace {

class LiteResult : public Result {
 public:
  const absl::Status& status() const override { return status_; }
  std::span<const OutputInfo> outputs() const override { return infos_; }
  // The inputs were copied.
  bool HoldsInputs() const override { return false; }
  void Release() override { outputs_.clear(); }

  void Pack(size_t i, std::span<std::byte> out) const override {
    const LiteOutput& output = outputs_[i];
    if (output.info.dtype != tensor::DType::kString) {
      if (!out.empty()) std::memcpy(out.data(), output.bytes->bytes().data(), out.size());
      return;
    }
    tensor::StringWriter writer(out, output.strings.size());
    for (const std::string_view text : output.strings) writer.Add(text);
  }

  void Set(absl::Status status, std::vector<LiteOutput> outputs) {
    status_ = std::move(status);
    if (!status_.ok()) return;
    outputs_ = std::move(outputs);
    for (const LiteOutput& output : outputs_) infos_.push_back(output.info);
  }

 private:
  absl::Status status_;
  std::vector<LiteOutput> outputs_;
  std::vector<OutputInfo> infos_;
};

// An opened file.
struct Opened {
  explicit Opened(const LiteRtApi* api) : program{api, nullptr, nullptr, {}} {}
  ~Opened() {
    if (program.model != nullptr) program.api->LiteRtDestroyModel(program.model);
    if (program.environment != nullptr) {
      program.api->LiteRtDestroyEnvironment(program.environment);
    }
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  LiteProgram program;
};

// A run waits where all are taken, which happens where state allows but one: else there is one for
// each executor.
class InterpreterPool {
 public:
  explicit InterpreterPool(std::vector<std::unique_ptr<Interpreter>> all) {
    for (std::unique_ptr<Interpreter>& interpreter : all) {
      places_.push_back(std::make_unique<Place>());
      places_.back()->interpreter = std::move(interpreter);
    }
  }

  template <typename Task>
  void With(const Task& task) {
    for (const std::unique_ptr<Place>& place : places_) {
      if (place->taken.exchange(true)) continue;
      Use(*place, task);
      place->taken = false;
      return;
    }
    Use(*places_[turn_++ % places_.size()], task);
  }

 private:
  struct Place {
    std::unique_ptr<Interpreter> interpreter;
    std::atomic<bool> taken = false;
    base::Mutex mu;  // Held by the run that has the interpreter.
  };

  template <typename Task>
  static void Use(Place& place, const Task& task) {
    const base::MutexLock lock(&place.mu);
    task(*place.interpreter);
  }

  std::vector<std::unique_ptr<Place>> places_;
  std::atomic<size_t> turn_ = 0;
};

class LiteRtModelOfFile : public Model {
 public:
  struct Parts {
    std::string runtime_version;
    LiteSignatures signatures;
    std::string stateful_reason;
    std::unique_ptr<Opened> opened;
    std::vector<std::unique_ptr<Interpreter>> interpreters;
  };
  explicit LiteRtModelOfFile(Parts parts)
      : runtime_version_(std::move(parts.runtime_version)),
        signatures_(std::move(parts.signatures)),
        stateful_reason_(std::move(parts.stateful_reason)),
        opened_(std::move(parts.opened)),
        interpreters_(std::move(parts.interpreters)) {}

  const tensor::SignatureList& signatures() const override { return signatures_.list; }
  const std::string& stateful_reason() const override { return stateful_reason_; }

  void Describe(ModelInfo* info) const override {
    info->signature_def_map = signatures_.signature_def_map;
    info->runtime_version = runtime_version_;
    info->stateful_reason = stateful_reason_;
    info->devices = {"CPU"};
    for (const tensor::Signature& signature : signatures_.list) {
      info->alone[signature.name] =
          "a TensorFlow Lite graph is not examined for operations that join rows";
    }
  }

  std::unique_ptr<Result> Run(int signature, std::span<const tensor::TensorView> inputs) override {
    return RunTogether(std::span(&signature, 1), inputs);
  }

  std::unique_ptr<Result> RunTogether(std::span<const int> signatures,
                                      std::span<const tensor::TensorView> inputs) override {
    auto result = std::make_unique<LiteResult>();
    absl::Status status;
    std::vector<LiteOutput> outputs;
    interpreters_.With([&](Interpreter& interpreter) {
      for (size_t i = 0; i < signatures.size() && status.ok(); ++i) {
        const auto number = static_cast<size_t>(signatures[i]);
        status = interpreter.Run(signatures_.list[number], signatures_.bindings[number], inputs,
                                 &outputs);
      }
    });
    result->Set(std::move(status), std::move(outputs));
    return result;
  }

  absl::Status OpenNarrow(const std::string&) override {
    return absl::UnimplementedError("runs of TensorFlow Lite models have one thread anyway");
  }
  std::unique_ptr<Result> WarmNarrow(int signature,
                                     std::span<const tensor::TensorView> inputs) override {
    return Run(signature, inputs);
  }

 private:
  const std::string runtime_version_;
  const LiteSignatures signatures_;
  const std::string stateful_reason_;
  const std::unique_ptr<Opened> opened_;
  InterpreterPool interpreters_;  // Behind what they refer to.
};

absl::Status OpenEnvironment(const LiteRtApi& api, LiteRtEnvironment** environment) {
  constexpr int64_t kErrors = 3;  // Of the severities that are logged.
  // No accelerator but the CPU: others look for libraries and devices.
  const LiteRtEnvOption options[] = {
      {.tag = kLiteRtEnvOptionTagAutoRegisterAccelerators,
       .value = {.type = kLiteRtAnyTypeInt, .value = kLiteRtHwAcceleratorCpu}},
      {.tag = kLiteRtEnvOptionTagMinLoggerSeverity,
       .value = {.type = kLiteRtAnyTypeInt, .value = kErrors}},
  };
  return ToStatus(api.LiteRtCreateEnvironment(2, options, environment), "starting LiteRT");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LiteRtEngine::Load(const LoadOptions& options) {
  if (!runtime_.ok()) return runtime_.status();
  const LiteRtApi& api = (*runtime_)->api();
  LiteRtModelOfFile::Parts parts;
  parts.runtime_version = (*runtime_)->version();
  parts.opened = std::make_unique<Opened>(&api);
  LiteProgram& program = parts.opened->program;
  RETURN_IF_ERROR(OpenEnvironment(api, &program.environment));
  const std::string path = base::Cat(options.directory, "/", kLiteModelFile);
  RETURN_IF_ERROR(
      ToStatus(api.LiteRtCreateModelFromFile(program.environment, path.c_str(), &program.model),
               base::Cat("loading ", path)));
  const auto context = [&path](const absl::Status& status) {
    return base::WithContext(status, base::Cat("loading ", path, ": "));
  };
  absl::StatusOr<LiteFile> file = ReadLiteFile(api, program.model);
  if (!file.ok()) return context(file.status());
  program.file = *std::move(file);
  absl::StatusOr<LiteSignatures> signatures = PlanSignatures(program.file);
  if (!signatures.ok()) return context(signatures.status());
  parts.signatures = *std::move(signatures);
  parts.stateful_reason = LiteStatefulReason(program.file);
  const int count = parts.stateful_reason.empty() ? options.runs_at_once : 1;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<std::unique_ptr<Interpreter>> interpreter = Interpreter::Make(program);
    if (!interpreter.ok()) return context(interpreter.status());
    parts.interpreters.push_back(*std::move(interpreter));
  }
  return std::make_unique<LiteRtModelOfFile>(std::move(parts));
}

}  // namespace tensord::engine
