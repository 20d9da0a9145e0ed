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
  const auto find = words == SignatureWords::kGrpc   ? wire::FindSignature
                    : words == SignatureWords::kRest ? wire::FindSignatureForJson
                                                     : wire::FindInferenceSignature;
  ASSIGN_OR_RETURN(const int signature, find(servable->signatures, spec.signature_name));
  trace.signature = signature;
  return Target{.servable = std::move(servable), .signature = signature};
}

}  // namespace tensord::front
