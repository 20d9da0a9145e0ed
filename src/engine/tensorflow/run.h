// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/tensorflow/c_api.h"
#include "engine/tensorflow/runtime.h"
#include "engine/tensorflow/wide_thread.h"

namespace tensord::engine {

// Owns a session and the graph it was made from.
struct SessionHandle {
  explicit SessionHandle(const TensorFlowApi* functions) : api(functions) {}
  SessionHandle(SessionHandle&& from) noexcept
      : api(from.api),
        graph(std::exchange(from.graph, nullptr)),
        session(std::exchange(from.session, nullptr)) {}
  SessionHandle& operator=(SessionHandle&&) = delete;
  ~SessionHandle();

  const TensorFlowApi* const api;
  TF_Graph* graph = nullptr;
  TF_Session* session = nullptr;
};

// What the loader knows of a model beside its session.
struct ModelParts {
  tensor::SignatureList signatures;
  std::string signature_def_map;
  std::string stateful_reason;
  std::map<std::string, std::string> alone;  // As ModelInfo's: what the graph says.
  std::vector<std::string> devices;
  std::vector<std::string> warnings;
  bool runs_in_caller = true;
  // Opens the model again, with more behind its ConfigProto.
  std::function<absl::Status(const std::string& more_config, SessionHandle*)> open = {};
};

// A signature's places in the graph. The fetch list is the same for every run: each other one would
// be pruned, optimised and compiled anew by the session.
struct BoundSignature {
  // An output as the signature has it.
  struct Fetched {
    std::string name;  // The client's, for words.
    tensor::DType dtype;
  };
  std::vector<TF_Output> feeds;
  std::vector<TF_Output> fetches;  // Of the dense outputs.
  std::vector<Fetched> fetched;    // The same ones.
  absl::Status broken;             // Why no run of it can work; OK when one can.
};

// A session, and where in its graph the signatures are.
struct BoundSession {
  BoundSession(SessionHandle opened, const tensor::SignatureList& signatures);

  const SessionHandle handle;
  const std::vector<BoundSignature> bound;
};

// A SavedModel in a session, or in two: a wide one, whose ops use all the threads that the model
// may use, and a narrow one, whose ops stay in one thread. A run alone is fastest in the wide one;
// runs beside each other do more a second in the narrow one. The weights are there twice then:
// neither sessions nor a session's devices can share them, and the runtime has no other way to
// choose a run's width (its run handler pool has, and wakes up 4,000 times a second for it).
//
// Inputs of fixed width are used where they lie (the runtime never writes to memory that it does
// not own) unless the model is stateful or the runtime once kept an input after a run: then they
// are copied, because a variable may have taken the input's memory for its value.
class TensorFlowModel : public Model {
 public:
  TensorFlowModel(SessionHandle session, ModelParts parts);
  ~TensorFlowModel() override;

  const tensor::SignatureList& signatures() const override { return parts_.signatures; }
  const std::string& stateful_reason() const override { return parts_.stateful_reason; }
  void Describe(ModelInfo* info) const override;
  std::unique_ptr<Result> Run(int signature, std::span<const tensor::TensorView> inputs) override;
  std::unique_ptr<Result> RunTogether(std::span<const int> signatures,
                                      std::span<const tensor::TensorView> inputs) override;
  absl::Status OpenNarrow(const std::string& more_config) override;
  std::unique_ptr<Result> WarmNarrow(int signature,
                                     std::span<const tensor::TensorView> inputs) override;

 private:
  bool MayFetchTogether(std::vector<int> signatures);
  std::unique_ptr<Result> RunIn(const BoundSession& session, int signature,
                                std::span<const tensor::TensorView> inputs);

  const ModelParts parts_;
  const BoundSession wide_;
  // Both before the first Run that has company.
  std::unique_ptr<const BoundSession> narrow_;
  std::unique_ptr<WideThread> wide_thread_;
  std::vector<bool> narrow_warm_;  // By signature.
  std::atomic<int> running_ = 0;
  TF_Buffer* const run_options_;  // Null for the defaults.
  // Set once by any run's end, read by every run; only ever goes from false to true.
  std::atomic<bool> copies_inputs_;

  base::Mutex mu_;
  // The sets of signatures that ran as one, each sorted.
  std::set<std::vector<int>> together_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensord::engine
