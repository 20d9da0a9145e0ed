// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/litert/c_api.h"
#include "engine/litert/lite_file.h"
#include "engine/litert/signatures.h"
#include "tensor/tensor.h"

namespace tensord::engine {

// An output as the interpreter left it.
struct LiteOutput {
  OutputInfo info;
  // The elements, or TensorFlow Lite's form of strings (strings.h). Shared, because an output may
  // be an input or another output as well.
  std::shared_ptr<const tensor::Buffer> bytes;
  std::vector<std::string_view> strings = {};  // Into `bytes`.
};

// What all interpreters of a model share.
struct LiteProgram {
  const LiteRtApi* api;
  LiteRtEnvironment* environment;
  LiteRtModel* model;
  LiteFile file;
};

// Runs a model's signatures, one run at a time, in the thread that calls.
// Lifetime: the program outlives it.
class Interpreter {
 public:
  static absl::StatusOr<std::unique_ptr<Interpreter>> Make(const LiteProgram& program);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Makes one run and adds its outputs, in the binding's order. Tensors take the shapes that came,
  // as in the original, as far as the model's operations bear it.
  absl::Status Run(const tensor::Signature& signature, const LiteBinding& binding,
                   std::span<const tensor::TensorView> inputs, std::vector<LiteOutput>* outputs);

 private:
  struct Memory;

  Interpreter(const LiteProgram* program, LiteRtCompiledModel* compiled)
      : program_(program), compiled_(compiled) {}

  absl::Status Feed(const tensor::Signature& signature, const LiteBinding& binding,
                    std::span<const tensor::TensorView> inputs, std::vector<Memory>* fed);
  absl::StatusOr<std::vector<Memory>> MakeRoom(const LiteRunner& runner, size_t number,
                                               const std::vector<Memory>& fed,
                                               uint64_t string_bytes);
  absl::Status Invoke(size_t number, const std::vector<Memory>& fed,
                      const std::vector<Memory>& room);
  absl::Status Collect(const tensor::Signature& signature, const LiteBinding& binding,
                       const std::vector<Memory>& room, std::vector<LiteOutput>* outputs) const;
  absl::Status CheckWritten(size_t number);
  absl::StatusOr<std::vector<LiteRtLayout>> Layouts(size_t number, bool allocate) const;
  absl::Status Explain(LiteRtStatus status, std::string_view what) const;

  const LiteProgram* const program_;
  LiteRtCompiledModel* const compiled_;
  std::set<size_t> checked_;  // Runners whose outputs came where they were to.
};

}  // namespace tensord::engine
