// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/audit.h"

#include "base/limits.h"
#include "base/text.h"
#include "obs/log.h"

namespace tensord::front {

bool AuditLimit::Take(absl::Time now) {
  const bool may = lines_.Take(now);
  if (!may) ++left_out_;
  return may;
}

void Audit::Write(loop::EventLoop& loop, const RequestHead& caller, const AuditEntry& entry) {
  const bool refused = !entry.verdict.ok();
  if (!MayWrite(loop, refused)) return;
  const std::string target = caller.target.substr(0, limits::kAccessLogTextBytesMax);
  const std::string model(entry.model.substr(0, limits::kAccessLogTextBytesMax));
  const std::string why(base::Message(entry.verdict));
  obs::Write(refused ? obs::Level::kWarn : obs::Level::kInfo,
             refused ? "audit: refused" : "audit: admin call",
             {{"peer", caller.peer},
              {"identity", entry.identity.empty() ? std::string_view("nobody") : entry.identity},
              {"operation", entry.operation},
              {"model", model},
              {"target", target},
              {"why", why}});
}

bool Audit::MayWrite(loop::EventLoop& loop, bool refused) {
  base::MutexLock lock(&mu_);
  if ((refused ? refused_ : admin_).Take(loop.Now())) return true;
  if (!std::exchange(summary_due_, true)) {
    loop.At(loop.Now() + limits::kAuditSummaryEvery, [this] { Summarize(); });
  }
  return false;
}

void Audit::Summarize() {
  uint64_t refused = 0;
  uint64_t admin = 0;
  {
    base::MutexLock lock(&mu_);
    summary_due_ = false;
    refused = refused_.TakeLeftOut();
    admin = admin_.TakeLeftOut();
  }
  if (refused > 0) obs::Warn("audit: {} more refused calls, too many for a line each", refused);
  if (admin > 0) obs::Warn("audit: {} more admin calls, too many for a line each", admin);
}

}  // namespace tensord::front
