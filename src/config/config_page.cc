// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "config/option_table.h"
#include "config/settings_page.h"

namespace tensord::config {
namespace {

constexpr std::string_view kIntroduction = R"(# Options

<!-- Made by `tensord docs config` from src/config/option_table.cc; a test compares. Do not edit. -->

`tensord serve` takes `--name=value` or `--name value`; an option it does not know is an error.
Started under the name `tensorflow_model_server`, the same program reads its command line as the
original does: only `--name=value` (for a bool also `--name`), an unknown flag is reported and
start-up goes on, a value that cannot be read prints the usage and exits with 255.

State: **works**; **not needed**: accepted, and what it asks for holds without it, or there is
nothing here that it could set; **no effect**: accepted with one warning line when given, because
something is lost; **refused**: any value but the default stops the start, since going on without it would change what
is served or who may reach it. Origin: *original* is a flag of tensorflow_model_server with its
syntax and default, *tensord* is ours.
)";

constexpr std::string_view kFiles = R"(
## Text files

All are protobuf's text format, as the original's. A mistake ends the start (or leaves a reload
undone) with `Error parsing text-format <message>: <file>:<line>:<column>: <what>`. `tensord check`
in front of a command line finds all mistakes in it and its files, and starts nothing.

| option | message | read |
| --- | --- | --- |
| `model_config_file` | `tensorflow.serving.ModelServerConfig` | at the start, on SIGHUP, on each poll |
| `model_settings_file` | `tensord.ModelSettingsFile` | likewise |
| `platform_config_file` | `tensorflow.serving.PlatformConfigMap`, of `SavedModelBundleSourceAdapterConfig` | at the start |
| `batching_parameters_file` | `tensorflow.serving.BatchingParameters` | at the start |
| `tensorflow_session_config_file` | `tensorflow.ConfigProto` of TensorFlow 2.21, all fields | at the start |
| `monitoring_config_file` | `tensorflow.serving.MonitoringConfig` | at the start |
| `access_rules_file` | `tensord.AccessRules` ([access.md](access.md)) | at the start, on SIGHUP, every 10 seconds |
| (`batching_params.pbtxt` of a version) | `tensorflow.serving.BatchingParameters` | when the version loads |

`batching_parameters_file`: every parameter is optional, and without one tensord decides.
`max_batch_size` (rows of a call and, unless calls are split, of a run), `batch_timeout_micros` (how
long a part-full batch waits; 0: not at all), `max_enqueued_batches` (waiting a signature; more is
UNAVAILABLE), `num_batch_threads` (batches of a version that run at once), `allowed_batch_sizes` (the
last is `max_batch_size`; runs are padded up to the next), `pad_variable_length_inputs` (inner dims
grow to the batch's largest, with the first element of each input: results may differ from those of
calls that run alone), `enable_large_batch_splitting` and `max_execution_batch_size` (larger calls
run in pieces). `thread_pool_name` names nothing here.
)";

std::string_view StateText(OptionState state) {
  switch (state) {
    case OptionState::kWorks:
      return "works";
    case OptionState::kNotNeeded:
      return "not needed";
    case OptionState::kNoEffect:
      return "no effect";
    case OptionState::kRefused:
      return "refused";
  }
  return "";
}

std::string DefaultText(const Option& option) {
  const std::string text = ValueText(option, ServerOptions());
  return text.empty() ? "(empty)" : base::Cat("`", text, "`");
}

std::string Meaning(const Option& option) {
  std::string text(option.help);
  if (!option.choices.empty()) text += base::Cat(" (one of `", option.choices, "`)");
  if (!option.note.empty()) text += base::Cat(". Now: ", option.note);
  return text;
}

}  // namespace

std::string ConfigPage() {
  std::string page(kIntroduction);
  for (const OptionGroup group : kOptionGroups) {
    page += base::Cat("\n## ", GroupTitle(group),
                      "\n\n| option | type | default | origin | state | meaning |\n"
                      "| --- | --- | --- | --- | --- | --- |\n");
    for (const Option& option : OptionTable()) {
      if (option.group != group) continue;
      page += base::Cat("| `", option.name, "` | ", TypeName(option), " | ", DefaultText(option),
                        " | ", option.origin == OptionOrigin::kOriginal ? "original" : "tensord",
                        " | ", StateText(option.state), " | ", Meaning(option), " |\n");
    }
  }
  page += kFiles;
  page += SettingsSection();
  return page;
}

}  // namespace tensord::config
