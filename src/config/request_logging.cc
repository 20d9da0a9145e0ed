// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/request_logging.h"

#include "base/text.h"
#include "tensord/model_server_config.pb.h"

namespace tensord::config {
namespace {

namespace tfs = tensorflow::serving;

// The collector that there is. The original's registry is empty, so no file in use names another
// one that would work.
constexpr std::string_view kTfRecord = "tfrecord";

// The first rule that fits this task decides, as in the original. There is one task here, in no
// data centre.
double SamplingRate(const tfs::SamplingConfig& sampling) {
  for (const tfs::PerTaskSamplingConfig& rule : sampling.per_task_sampling_configs()) {
    const bool fits = rule.dc().empty() && (!rule.has_task_index() || rule.task_index() == 0);
    if (fits) return rule.sampling_rate();
  }
  return sampling.sampling_rate();
}

}  // namespace

absl::StatusOr<std::optional<RequestLogging>> ToRequestLogging(const tfs::ModelConfig& model) {
  if (!model.has_logging_config()) return std::nullopt;
  const tfs::LoggingConfig& from = model.logging_config();
  const std::string where = base::Cat("model ", model.name(), ": logging_config: ");
  const std::string& type = from.log_collector_config().type();
  if (!type.empty() && type != kTfRecord) {
    return absl::NotFoundError(base::Cat(where, "there is no log collector of type \"", type,
                                         "\"; use \"", kTfRecord, "\""));
  }
  if (from.has_custom_logging_config()) {
    return absl::InvalidArgumentError(
        base::Cat(where, "custom_logging_config is for loggers that are not here; leave it out"));
  }
  RequestLogging logging{.sampling_rate = SamplingRate(from.sampling_config()),
                         .filename_prefix = from.log_collector_config().filename_prefix()};
  if (!(logging.sampling_rate >= 0 && logging.sampling_rate <= 1)) {
    return absl::InvalidArgumentError(
        base::Cat(where, "sampling_rate is ", logging.sampling_rate, "; expected 0 to 1"));
  }
  if (!logging.filename_prefix.starts_with('/') || logging.filename_prefix.ends_with('/')) {
    return absl::InvalidArgumentError(base::Cat(
        where, "filename_prefix is \"", logging.filename_prefix,
        "\"; expected an absolute path with the beginning of a file name, as /var/log/half"));
  }
  return logging;
}

}  // namespace tensord::config
