// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/ledger.h"

#include <cstdio>

#include "base/limits.h"
#include "base/text.h"

namespace tensord::models {
namespace {

absl::Status DoesNotFit(const Ledger::Request& request, uint64_t held, uint64_t limit,
                        std::string_view whose, std::string_view hint) {
  return absl::ResourceExhaustedError(base::Cat(
      "Insufficient resources to load servable {name: ", request.model, " version: ",
      request.version, "}: a worker for it needs about ", BytesText(request.bytes), ", and ",
      BytesText(held), " of the ", BytesText(limit), " for ", whose, " are taken. ", hint));
}

bool Exceeds(uint64_t limit, uint64_t held, uint64_t more) {
  return limit != 0 && (held > limit || more > limit - held);
}

}  // namespace

uint64_t Ledger::Estimate(uint64_t file_bytes) {
  return file_bytes + file_bytes / 5 + limits::kWorkerBaseBytes;
}

void Ledger::Add(const std::string& model, uint64_t bytes) {
  server_bytes_ += bytes;
  model_bytes_[model] += bytes;
}

absl::Status Ledger::Admit(const Request& request) const {
  const auto at = model_bytes_.find(request.model);
  const uint64_t model_held = at == model_bytes_.end() ? 0 : at->second;
  if (Exceeds(request.worker_bytes_max, 0, request.bytes)) {
    return DoesNotFit(request, 0, request.worker_bytes_max, "one worker of this model",
                      "Raise the model's worker memory limit.");
  }
  if (Exceeds(request.model_bytes_max, model_held, request.bytes)) {
    return DoesNotFit(
        request, model_held, request.model_bytes_max, "this model",
        "Old and new version live side by side during a switch: raise the model's memory "
        "limit, or serve fewer versions or replicas.");
  }
  if (Exceeds(server_bytes_max_, server_bytes_, request.bytes)) {
    return DoesNotFit(request, server_bytes_, server_bytes_max_, "all models",
                      "Unload another model or version, or raise the server's memory limit.");
  }
  return absl::OkStatus();
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return base::Cat(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f %s", value, kUnits[unit]);
  return text;
}

}  // namespace tensord::models
