// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

namespace tensord::config {

// One setting of tensord.ModelSettings, as docs/config.md shows it.
struct SettingRow {
  std::string name;  // "batching.rows_max"
  std::string type;
  std::string help;  // Empty: somebody forgot; a test finds it.
};
std::vector<SettingRow> SettingRows();

// The part of docs/config.md about --model_settings_file.
std::string SettingsSection();

}  // namespace tensord::config
