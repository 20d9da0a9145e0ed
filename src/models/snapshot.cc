// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/snapshot.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/cord.h"
#include "base/limits.h"
#include "base/text.h"

namespace tensord::models {
namespace {

constexpr const char* kRetryAfterUrl = "tensord/retry_after_ms";
constexpr absl::Duration kRetryHint =
    absl::Seconds(1);  // Most loads and restarts are over by then.

absl::Status WithRetry(absl::Status status, absl::Duration after) {
  status.SetPayload(kRetryAfterUrl, absl::Cord(base::Cat(absl::ToInt64Milliseconds(after))));
  return status;
}

// The original's words for what was asked.
std::string Asked(std::string_view model, std::optional<int64_t> version) {
  if (!version.has_value()) return base::Cat("Latest(", model, ")");
  return base::Cat("Specific(", model, ", ", *version, ")");
}

absl::Status NotFound(std::string_view model, std::optional<int64_t> version,
                      std::string_view reason = "") {
  return absl::NotFoundError(base::Cat("Servable not found for request: ", Asked(model, version),
                                       reason.empty() ? "" : ": ", reason));
}

std::string Reason(const VersionEntry& entry) {
  return base::Cat("version ", entry.number, " failed: ", base::Message(entry.status));
}

absl::Status NotYet(std::string_view model, const VersionEntry& entry, absl::Time now) {
  const std::string why =
      entry.status.ok() ? std::string() : base::Cat("; ", base::Message(entry.status));
  return WithRetry(absl::UnavailableError(base::Cat(
                       "Model ", model, ", version ", entry.number, ", is configured but ",
                       entry.restarting ? "its worker is being restarted (" : "not loaded yet (",
                       StateName(entry.state), " since ",
                       std::max<int64_t>(0, absl::ToInt64Seconds(now - entry.since)), " s", why,
                       "): try again")),
                   kRetryHint);
}

bool Pending(const VersionEntry& entry) {
  return entry.state == State::kStart || entry.state == State::kLoading;
}

// Why none of a model's versions serves.
absl::Status NoneServes(std::string_view model, const ModelEntry& entry, absl::Time now) {
  if (!entry.configured) return NotFound(model, std::nullopt);
  const auto pending = std::ranges::find_if(entry.versions, Pending);
  if (pending != entry.versions.end()) return NotYet(model, *pending, now);
  const auto failed = std::ranges::find_if(
      entry.versions, [](const VersionEntry& version) { return !version.status.ok(); });
  if (failed != entry.versions.end()) {
    if (!failed->will_retry) return NotFound(model, std::nullopt, Reason(*failed));
    return WithRetry(absl::UnavailableError(base::Cat("Model ", model, ", ", Reason(*failed),
                                                      "; it is tried again after a pause")),
                     limits::kRestartMax);
  }
  if (entry.source.ok()) return NotFound(model, std::nullopt);
  return WithRetry(absl::UnavailableError(base::Cat("Model ", model,
                                                    " is configured but has no version to serve: ",
                                                    base::Message(entry.source))),
                   kRetryHint);
}

// Why this one does not serve.
absl::Status ThisDoesNot(std::string_view model, const ModelEntry& entry, int64_t number,
                         absl::Time now) {
  const VersionEntry* version = entry.Version(number);
  if (!entry.configured) return NotFound(model, number);
  if (version == nullptr) {
    const bool named = std::ranges::find(entry.named, number) != entry.named.end();
    if (entry.source.ok() && !named) return NotFound(model, number);
    const std::string why = entry.source.ok() ? base::Cat("it is not in ", entry.base_path)
                                              : std::string(base::Message(entry.source));
    return WithRetry(
        absl::UnavailableError(base::Cat("Model ", model, ", version ", number,
                                         named ? ", is configured but not there yet: "
                                               : ", may be there but cannot be found yet: ",
                                         why)),
        kRetryHint);
  }
  if (Pending(*version)) return NotYet(model, *version, now);
  return NotFound(model, number, version->status.ok() ? "" : Reason(*version));
}

bool Serves(const VersionEntry& entry, bool or_restarting) {
  return entry.state == State::kAvailable ||
         (or_restarting && entry.restarting && entry.state == State::kLoading);
}

}  // namespace

const VersionEntry* ModelEntry::Latest() const {
  const auto at = std::ranges::find(versions, State::kAvailable, &VersionEntry::state);
  return at == versions.end() ? nullptr : &*at;
}

const VersionEntry* ModelEntry::Version(int64_t number) const {
  const auto at = std::ranges::find(versions, number, &VersionEntry::number);
  return at == versions.end() ? nullptr : &*at;
}

absl::StatusOr<const VersionEntry*> Snapshot::Find(const VersionSpec& spec, absl::Time now) const {
  const auto model = models.find(spec.model);
  std::optional<int64_t> number = spec.version;
  if (spec.label.has_value()) {
    const bool known = model != models.end() && model->second->labels.contains(*spec.label);
    if (!known) {
      return absl::InvalidArgumentError(
          base::Cat("Unrecognized servable version label: ", *spec.label));
    }
    number = model->second->labels.find(*spec.label)->second;
  }
  if (model == models.end()) return NotFound(spec.model, number);
  const ModelEntry& entry = *model->second;
  if (number.has_value()) {
    const VersionEntry* version = entry.Version(*number);
    if (version != nullptr && Serves(*version, spec.or_restarting)) return version;
    return ThisDoesNot(spec.model, entry, *number, now);
  }
  if (const VersionEntry* latest = entry.Latest(); latest != nullptr) return latest;
  if (spec.or_restarting) {
    for (const VersionEntry& version : entry.versions) {
      if (Serves(version, true)) return &version;
    }
  }
  return NoneServes(spec.model, entry, now);
}

absl::StatusOr<std::vector<const VersionEntry*>> Snapshot::Status(
    std::string_view model, std::optional<int64_t> version) const {
  std::vector<const VersionEntry*> found;
  if (const auto at = models.find(model); at != models.end()) {
    for (const VersionEntry& entry : at->second->versions) {
      if (!version.has_value() || entry.number == *version) found.push_back(&entry);
    }
  }
  if (!found.empty()) return found;
  if (version.has_value()) {
    return absl::NotFoundError(base::Cat("Could not find version ", *version, " of model ", model));
  }
  return absl::NotFoundError(base::Cat("Could not find any versions of model ", model));
}

absl::StatusOr<bool> Snapshot::ModelReady(std::string_view model) const {
  const auto at = models.find(model);
  if (at == models.end()) {
    return absl::NotFoundError(base::Cat("Could not find any versions of model ", model));
  }
  return at->second->Latest() != nullptr;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfterUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  int64_t milliseconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  return absl::Milliseconds(milliseconds);
}

}  // namespace tensord::models
