// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/runtime_facts.h"

#include <array>

#include "base/text.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

// tensorflow.org/install/source#gpu, read in 2026-03.
constexpr std::array kTested = {
    TestedBuild{21, "3.10-3.13", "9.3", "12.5"}, TestedBuild{20, "3.9-3.13", "9.3", "12.5"},
    TestedBuild{19, "3.9-3.12", "9.3", "12.5"},  TestedBuild{18, "3.9-3.12", "9.3", "12.5"},
    TestedBuild{17, "3.9-3.12", "8.9", "12.3"},  TestedBuild{16, "3.9-3.12", "8.9", "12.3"},
    TestedBuild{15, "3.9-3.11", "8.9", "12.2"},  TestedBuild{14, "3.9-3.11", "8.7", "11.8"},
    TestedBuild{13, "3.8-3.11", "8.6", "11.8"},  TestedBuild{12, "3.8-3.11", "8.6", "11.8"},
    TestedBuild{11, "3.7-3.10", "8.1", "11.2"},  TestedBuild{10, "3.7-3.10", "8.1", "11.2"},
};

// The text between quotes after 'key', of Python's ('key', 'value').
std::string QuotedAfter(const std::string& text, std::string_view key) {
  size_t at = text.find(base::Cat("'", key, "'"));
  if (at == std::string::npos) return "";
  at = text.find('\'', at + key.size() + 2);
  if (at == std::string::npos) return "";
  return text.substr(at + 1, text.find('\'', at + 1) - at - 1);
}

void ReadBuildInfo(const std::string& text, RuntimeFacts* facts) {
  facts->cuda = text.find("('is_cuda_build', True)") != std::string::npos;
  if (!facts->cuda) return;
  facts->cuda_version = QuotedAfter(text, "cuda_version");
  facts->cudnn_version = QuotedAfter(text, "cudnn_version");
  const size_t list = text.find("'cuda_compute_capabilities', [");
  if (list == std::string::npos) return;
  const size_t begin = text.find('[', list) + 1;
  const std::string_view inside =
      std::string_view(text).substr(begin, text.find(']', begin) - begin);
  for (const std::string_view item : Split(inside, "', ")) facts->capabilities.emplace_back(item);
}

// What lies below the machine's root is named as the machine itself would name it.
std::string WithoutRoot(std::string text, const std::string& root) {
  const size_t at = root.empty() ? std::string::npos : text.find(root);
  return at == std::string::npos ? text : text.erase(at, root.size());
}

}  // namespace

RuntimeFacts ReadRuntime(const Machine& machine) {
  RuntimeFacts facts;
  for (const engine::RuntimeCandidate& place : engine::LookForRuntime(machine.places)) {
    const std::string why = WithoutRoot(place.why, machine.root);
    facts.looked_at.push_back(
        base::Cat(WithoutRoot(place.directory, machine.root), " (", why, ")"));
    if (!place.missing.empty()) continue;
    facts.directory = WithoutRoot(place.directory, machine.root);
    facts.why = why;
  }
  if (facts.directory.empty()) return facts;
  facts.site_packages = facts.directory.substr(0, facts.directory.rfind('/'));
  for (const std::string& name : machine.List(facts.site_packages)) {
    // "tensorflow_cpu-2.21.0.dist-info", but not tensorflow_serving_api or tensorflow_text.
    if (!name.ends_with(".dist-info")) continue;
    const size_t dash = name.find('-');
    const std::string wheel = name.substr(0, dash);
    if (wheel != "tensorflow" && wheel != "tensorflow_cpu" && wheel != "intel_tensorflow") continue;
    facts.wheel = wheel;
    facts.version = name.substr(dash + 1, name.size() - dash - 1 - sizeof(".dist-info") + 1);
  }
  ReadBuildInfo(machine.ReadOr(base::Cat(facts.directory, "/python/platform/build_info.py")),
                &facts);
  return facts;
}

const TestedBuild* TestedBuildOf(std::string_view version) {
  const auto parts = Split(version, ".");
  if (parts.size() < 2 || parts[0] != "2") return nullptr;
  const auto minor = ToNumber(parts[1]);
  for (const TestedBuild& row : kTested) {
    if (minor == row.minor) return &row;
  }
  return nullptr;
}

int CompareVersions(std::string_view a, std::string_view b) {
  const auto x = Split(a, ".");
  const auto y = Split(b, ".");
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const int64_t difference = ToNumber(x[i]).value_or(0) - ToNumber(y[i]).value_or(0);
    if (difference != 0) return difference < 0 ? -1 : 1;
  }
  return 0;
}

}  // namespace tensord::doctor
