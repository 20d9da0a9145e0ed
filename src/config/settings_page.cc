// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/settings_page.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "base/text.h"
#include "tensord/model_settings.pb.h"

namespace tensord::config {
namespace {

struct SettingHelp {
  std::string_view name;
  std::string_view help;
};

constexpr SettingHelp kHelp[] = {
    {"executors",
     "Runs at a time in one worker; default: one for each CPU that may be used, divided among the "
     "replicas"},
    {"intra_op_threads",
     "Threads that one op may use, whatever else runs; wins over flags and session configs; "
     "default: all cores for a run alone, one for runs beside others"},
    {"inter_op_threads",
     "Ops of one run at a time; more than 1 makes runs use the runtime's pool unless "
     "`runs_in_caller` says otherwise"},
    {"replicas",
     "Workers a version, each a process with the whole model; default 1. What one was running when "
     "it died is run by another"},
    {"warm_up_rows", "Batch sizes of synthetic warm-up runs"},
    {"synthetic_warm_up", "False: no warm-up with made-up inputs"},
    {"onednn",
     "`ONEDNN_ON`, `ONEDNN_OFF`, or `ONEDNN_AUTO`: Intel's kernels, which a worker has or has not "
     "for its whole life"},
    {"op_libraries", "Absolute paths of libraries with custom ops, loaded in this order first"},
    {"memory_limit_bytes",
     "The most that a worker of this model may be estimated to need; a larger one is not loaded"},
    {"model_memory_limit_bytes",
     "The most that all workers of this model together may be estimated to need; a version that "
     "would exceed it waits or fails, as with the server's own limit"},
    {"run_timeout_ms", "Longest run of the model, whatever deadline the client set"},
    {"load_timeout_ms",
     "Longest load of a version, until its worker is loaded and warm; then that worker is ended "
     "and "
     "the load counts as failed; default: 30 minutes, for TensorFlow Lite 2 minutes"},
    {"batching.enabled",
     "True: calls may share runs, whatever was found about the model; false: every call runs "
     "alone, "
     "whatever the batching parameters say; unset: calls share runs where that changes no answer"},
    {"batching.rows_max", "Most rows that tensord puts into one run by itself"},
    {"batching.timeout_micros", "How long a part-full batch waits for more; default: not at all"},
    {"warm_up_strict", "True: a recorded warm-up request that fails fails the load"},
    {"runs_in_caller",
     "True: a run stays in its executor's thread; false: it uses the runtime's inter-op pool"},
    {"sandbox", "False: the worker keeps its rights. For models that you trust like the server"},
    {"sandbox_stage",
     "1: the worker may read its model's files for ever, and what is forbidden fails, for models "
     "that need files at run time; 2: once it is warm it may name no file, and what is forbidden "
     "ends it; unset: 2, but 1 for models that nothing warmed up"},
};

std::string TypeOf(const google::protobuf::FieldDescriptor& field) {
  const std::string type =
      field.enum_type() != nullptr ? field.enum_type()->name() : std::string(field.type_name());
  return field.is_repeated() ? base::Cat("list of ", type) : type;
}

void AddRows(const google::protobuf::Descriptor& message, const std::string& prefix,
             std::vector<SettingRow>* rows) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const std::string name = prefix + field.name();
    if (field.message_type() != nullptr) {
      AddRows(*field.message_type(), name + ".", rows);
      continue;
    }
    const auto* help = std::ranges::find(kHelp, name, &SettingHelp::name);
    rows->push_back({.name = name,
                     .type = TypeOf(field),
                     .help = help == std::end(kHelp) ? "" : std::string(help->help)});
  }
}

constexpr std::string_view kIntroduction = R"(
## Settings of a model

The file behind `--model_settings_file` is text-format `tensord.ModelSettingsFile`: settings by the
model's name, all optional. It is read again on SIGHUP and on each poll of the model config file; a
model whose worker settings changed gets new workers before the old ones go.

```
model {
  key: "half"
  value { executors: 2 batching { rows_max: 16 } }
}
```

| setting | type | meaning |
| --- | --- | --- |
)";

}  // namespace

std::vector<SettingRow> SettingRows() {
  std::vector<SettingRow> rows;
  AddRows(*tensord::ModelSettings::descriptor(), "", &rows);
  return rows;
}

std::string SettingsSection() {
  std::string section(kIntroduction);
  for (const SettingRow& row : SettingRows()) {
    section += base::Cat("| `", row.name, "` | ", row.type, " | ", row.help, " |\n");
  }
  return section;
}

}  // namespace tensord::config
