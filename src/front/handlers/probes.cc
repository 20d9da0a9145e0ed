// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/probes.h"

#include <string>
#include <string_view>

#include "base/text.h"
#include "front/handlers/authorize.h"
#include "front/handlers/reply.h"
#include "front/refusal.h"

namespace tensord::front {
namespace {

std::string ModelLine(const std::string& name, const models::ModelEntry& model) {
  std::string line = base::Cat(name, ":");
  if (model.versions.empty()) line += base::Cat(" no version; ", base::Message(model.source));
  for (const models::VersionEntry& version : model.versions) {
    line += base::Cat(" ", version.number, " ", models::StateName(version.state));
    if (!version.status.ok()) line += base::Cat(" (", base::Message(version.status), ")");
  }
  return line + "\n";
}

}  // namespace

void LiveProbe(Exchange& exchange) { ReplyText(exchange, 200, "live\n"); }

void ReadyProbe(const LoopContext& context, Exchange& exchange) {
  const bool draining = context.server->draining.load(std::memory_order_relaxed);
  std::string text = context.ready() ? "ready\n" : draining ? "draining\n" : "not ready\n";
  for (const auto& [name, model] : context.snapshot->models) {
    // Whoever may ask whether the server is ready need not be told what it serves.
    if (Permits(context, exchange.head(), Operation::kRead, name)) text += ModelLine(name, *model);
  }
  ReplyText(exchange, context.ready() ? 200 : 503, std::move(text));
}

void Preflight(Exchange& exchange, bool cors) {
  const std::string_view origin = exchange.head().Find("origin").value_or("");
  const bool web = origin.find("http://") != std::string_view::npos ||
                   origin.find("https://") != std::string_view::npos;
  Answer answer{.status = web ? 200 : 400,
                .code = web ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition};
  if (cors) AppendCorsHeaders(&answer.headers);
  exchange.Send(std::move(answer));
}

}  // namespace tensord::front
