// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/lookup.h"

#include "base/status_macros.h"
#include "wire/bind.h"

namespace tensord::front {

tensor::ModelSpec SpecOf(const wire::RestRoute& route, std::string_view signature_name) {
  return {.name = route.model,
          .version = route.version,
          .version_label = route.label,
          .signature_name = std::string(signature_name)};
}

int DefaultOipSignature(const tensor::SignatureList& signatures) {
  const int usual = tensor::SignatureIndex(signatures, wire::kDefaultSignature);
  if (usual >= 0) return usual;
  int only = -1;
  for (size_t i = 0; i < signatures.size(); ++i) {
    // Not callable by a client: how TensorFlow initialises a model.
    if (signatures[i].name == "__saved_model_init_op") continue;
    if (only >= 0) return -1;
    only = static_cast<int>(i);
  }
  return only;
}

absl::StatusOr<std::shared_ptr<const Servable>> FindServable(const LoopContext& context,
                                                             const tensor::ModelSpec& spec,
                                                             Trace& trace) {
  trace.model = spec.name;
  models::VersionSpec wanted{
      .model = spec.name, .version = spec.version, .label = {}, .or_restarting = true};
  if (!spec.version_label.empty()) wanted.label = spec.version_label;
  ASSIGN_OR_RETURN(const models::VersionEntry* entry,
                   context.snapshot->Find(wanted, context.loop->Now()));
  trace.servable = std::static_pointer_cast<const Servable>(entry->handle);
  return trace.servable;
}

absl::StatusOr<Target> FindTarget(const LoopContext& context, const tensor::ModelSpec& spec,
                                  SignatureWords words, Trace& trace) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Servable> servable, FindServable(context, spec, trace));
  if (words == SignatureWords::kOip && spec.signature_name.empty()) {
    trace.signature = DefaultOipSignature(servable->signatures);
    if (trace.signature >= 0) return Target{std::move(servable), trace.signature};
  }
  const auto find = words == SignatureWords::kGrpc        ? wire::FindSignature
                    : words == SignatureWords::kInference ? wire::FindInferenceSignature
                                                          : wire::FindSignatureForJson;
  ASSIGN_OR_RETURN(const int signature, find(servable->signatures, spec.signature_name));
  trace.signature = signature;
  return Target{.servable = std::move(servable), .signature = signature};
}

}  // namespace tensord::front
