// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/lookup.h"

#include "base/status_macros.h"
#include "wire/bind.h"

namespace tensord::front {

absl::StatusOr<std::shared_ptr<const Servable>> FindServable(const LoopContext& context,
                                                             const tensor::ModelSpec& spec) {
  models::VersionSpec wanted{
      .model = spec.name, .version = spec.version, .label = {}, .or_restarting = true};
  if (!spec.version_label.empty()) wanted.label = spec.version_label;
  ASSIGN_OR_RETURN(const models::VersionEntry* entry,
                   context.snapshot->Find(wanted, context.loop->Now()));
  return std::static_pointer_cast<const Servable>(entry->handle);
}

absl::StatusOr<Target> FindTarget(const LoopContext& context, const tensor::ModelSpec& spec,
                                  SignatureWords words) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Servable> servable, FindServable(context, spec));
  const auto find =
      words == SignatureWords::kGrpc ? wire::FindSignature : wire::FindSignatureForJson;
  ASSIGN_OR_RETURN(const int signature, find(servable->signatures, spec.signature_name));
  return Target{.servable = std::move(servable), .signature = signature};
}

obs::ModelMetrics& MetricsOf(const LoopContext& context, std::string_view model) {
  const auto at = context.snapshot->models.find(model);
  if (at == context.snapshot->models.end()) return *context.server->unknown_model;
  for (const models::VersionEntry& version : at->second->versions) {
    if (version.handle == nullptr) continue;
    return *static_cast<const Servable*>(version.handle.get())->metrics;
  }
  return *context.server->unknown_model;
}

}  // namespace tensord::front
