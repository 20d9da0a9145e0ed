// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/model_info.h"
#include "tensor/shape.h"
#include "tensor/signature.h"
#include "tensor/tensor.h"

// The seam between a worker and whatever runs a model. Worker-side code sees tensors in packed form
// (tensor/tensor.h) and numbers of signatures, nothing of a runtime.
namespace tensord::engine {

struct LoadOptions {
  std::string directory;  // Absolute path of the version's directory.
  std::vector<std::string> tags;
  std::string session_config;             // A serialized tensorflow.ConfigProto.
  std::vector<std::string> op_libraries;  // Absolute paths, loaded in order before the model.
  bool runs_in_caller = true;  // A run stays in its thread instead of the runtime's pool.
  int runs_at_once = 1;        // That will be asked for at the most.
};

struct OutputInfo {
  tensor::DType dtype = tensor::DType::kInvalid;  // So, without bytes: it cannot leave the runtime.
  tensor::Shape shape;
  uint64_t bytes = 0;  // Of the packed form.
};

// What one run gave; its outputs still lie in the runtime's memory and go with the object.
// Threads: one at a time.
class Result {
 public:
  virtual ~Result() = default;
  virtual const absl::Status& status() const = 0;
  // The signature's dense outputs, in its order; empty unless status() is OK.
  virtual std::span<const OutputInfo> outputs() const = 0;
  // Writes the packed form of output i. REQUIRES: out.size() == outputs()[i].bytes, and Release()
  // was not called.
  virtual void Pack(size_t i, std::span<std::byte> out) const = 0;
  // True while the runtime refers to the memory of the run's inputs. An output may be an input
  // passed through, so this can be true before Release and false after it.
  virtual bool HoldsInputs() const = 0;
  // Frees the outputs.
  virtual void Release() = 0;
};

// One loaded model.
// Threads: Run is safe from any number of threads; the others, while no Run is on its way.
class Model {
 public:
  virtual ~Model() = default;
  virtual const tensor::SignatureList& signatures() const = 0;
  // Why a run changes what later runs answer; empty when it does not.
  virtual const std::string& stateful_reason() const = 0;
  // Fills what the engine knows of the description.
  virtual void Describe(ModelInfo* info) const = 0;
  // Runs one signature, with all its inputs in its order, and waits for the end. Never null.
  // Lifetime: the inputs' bytes stay until the Result says that they are no longer held. Bytes at a
  // multiple of 64 may be used in place; they are never written.
  // REQUIRES: 0 <= signature < signatures().size(); inputs.size() is its number of inputs.
  virtual std::unique_ptr<Result> Run(int signature,
                                      std::span<const tensor::TensorView> inputs) = 0;
  // The same for several signatures at once, whose inputs are the same tensors of the graph: the
  // outputs of all, one signature's after the other's.
  // REQUIRES: as above; at least one signature, each with as many inputs as the first.
  virtual std::unique_ptr<Result> RunTogether(std::span<const int> signatures,
                                              std::span<const tensor::TensorView> inputs) = 0;

  // Opens the model a second time, in a session whose ops stay in one thread. From then on a Run
  // that has company takes place there, for signatures that were warmed: many runs on one thread
  // each cost less than as many that share all threads. Reads the model's files again;
  // `more_config` goes behind LoadOptions::session_config, where protobuf lets the later value win.
  // REQUIRES: not stateful, not opened yet.
  virtual absl::Status OpenNarrow(const std::string& more_config) = 0;
  // Makes one run there. REQUIRES: OpenNarrow was fine; the inputs as Run's.
  virtual std::unique_ptr<Result> WarmNarrow(int signature,
                                             std::span<const tensor::TensorView> inputs) = 0;
};

// A runtime in this process.
class Engine {
 public:
  virtual ~Engine() = default;
  // Blocks until loaded; seconds to minutes.
  virtual absl::StatusOr<std::unique_ptr<Model>> Load(const LoadOptions& options) = 0;
};

}  // namespace tensord::engine
