// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/checks/xla_flags.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

using Judge = Finding (*)(const Machine& machine, const std::string& value);

// A verdict on what is good as it is.
Finding Fine(std::string why = "") { return {.level = Level::kOk, .why = std::move(why)}; }
Finding Verdict(Level level, std::string why, std::string action) {
  return {.level = level, .why = std::move(why), .action = std::move(action)};
}

Finding LogLevel(const Machine&, const std::string& value) {
  const auto level = ToNumber(value);
  if (!level.has_value() || *level < 0) {
    return Verdict(Level::kWarning, "not a number from 0 to 3: taken as 0", "set 0, 1, 2 or 3");
  }
  if (*level >= 3) {
    return Verdict(Level::kWarning, "hides TensorFlow's errors, too", "set 2 at most");
  }
  return Fine(*level == 0 ? "everything is logged" : "hides the less important lines");
}

Finding XlaFlags(const Machine& machine, const std::string& value) {
  const std::string text(Trim(value));
  if (text.empty()) return Fine();
  std::string flags = text;
  if (text[0] != '-') {  // Then the runtime takes it as the name of a file with the flags.
    const auto file = machine.Read(text);
    if (!file.has_value()) {
      return Verdict(Level::kError, "does not begin with -, so it names a file, which is not there",
                     "write the flags, each beginning with --");
    }
    flags = *file;
  }
  const std::string problem = XlaFlagsProblem(flags);
  if (problem.empty()) return Fine("known flags");
  return Verdict(Level::kError,
                 base::Cat(problem, "; TensorFlow ends its process for an unknown one"),
                 "remove it (flags that begin with --xla_ belong into XLA_FLAGS)");
}

Finding PlainXlaFlags(const Machine&, const std::string& value) {
  for (const std::string_view word : Split(value, " \t\n")) {
    if (!word.starts_with("--tf_xla_")) continue;
    return Verdict(Level::kError,
                   base::Cat(word,
                             " belongs into TF_XLA_FLAGS; XLA ends its process for a flag "
                             "that it does not know"),
                   "move it");
  }
  return {.level = Level::kInfo, .why = "XLA ends its process for a flag that it does not know"};
}

Finding Onednn(const Machine&, const std::string& value) {
  if (value == "0") return Verdict(Level::kInfo, "oneDNN is off: convolutions are slower", "");
  if (value == "1") return Fine("oneDNN is on; results may differ in the last digits");
  return Verdict(Level::kWarning, "only 0 and 1 mean something", "set 0 or 1, or unset it");
}

Finding VisibleDevices(const Machine& machine, const std::string& value) {
  const auto& gpus = machine.gpus.gpus;
  if (value.empty() || value == "-1" || value == "NoDevFiles") {
    return Verdict(gpus.empty() ? Level::kOk : Level::kWarning, "all GPUs are hidden",
                   gpus.empty() ? "" : "unset it to use them");
  }
  std::set<std::string_view> seen;
  for (const std::string_view item : Split(value, ",")) {
    const auto index = ToNumber(item);
    const bool known = index.has_value() ? *index >= 0 && static_cast<size_t>(*index) < gpus.size()
                                         : std::ranges::any_of(gpus, [&](const nvml::Gpu& g) {
                                             return g.uuid.starts_with(item);
                                           });
    if (!seen.insert(item).second) {
      return Verdict(Level::kError, base::Cat(item, " is there twice: CUDA then sees no GPU"),
                     "name each GPU once");
    }
    if (!known && !item.starts_with("MIG-")) {
      return Verdict(gpus.empty() ? Level::kInfo : Level::kError,
                     base::Cat("there is no GPU ", item, ": CUDA sees only those before it"),
                     base::Cat("GPUs here: 0 to ", gpus.empty() ? 0 : gpus.size() - 1));
    }
  }
  return Fine(base::Cat(seen.size(), " of ", gpus.size(), " GPUs are visible"));
}

Finding LibraryPath(const Machine& machine, const std::string& value) {
  std::vector<std::string> missing;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find(':', begin), value.size());
    const std::string place = value.substr(begin, end - begin);
    begin = end + 1;
    if (place.empty() || place[0] != '/') {
      return Verdict(Level::kWarning,
                     "an empty or relative entry means the current directory, whatever that is",
                     "name directories from / on, without an empty entry");
    }
    if (place.find("stubs") != std::string::npos) {
      return Verdict(Level::kError,
                     base::Cat(place, " holds an empty libcuda for building: every call fails"),
                     "remove it");
    }
    if (!machine.Exists(place)) missing.push_back(place);
  }
  if (missing.empty()) return Fine("all of its directories exist");
  return Verdict(Level::kInfo, base::Cat("not there: ", Join(missing, ", ")), "remove them");
}

Finding Growth(const Machine& machine, const std::string& value) {
  if (value == "true" || value == "1") return Fine("GPU memory is taken as it is needed");
  if (value == "false" || value == "0") {
    return Verdict(machine.gpus.gpus.empty() ? Level::kOk : Level::kInfo,
                   "a process takes all memory of its GPUs", "");
  }
  return Verdict(Level::kWarning, "only true and false mean something", "set true or unset it");
}

Finding Zendnn(const Machine& machine, const std::string& value) {
  const std::string* onednn = machine.Variable("TF_ENABLE_ONEDNN_OPTS");
  if (value != "1" || (onednn != nullptr && *onednn == "0")) return Fine();
  return Verdict(Level::kWarning, "the zentf plugin wants oneDNN off",
                 "set TF_ENABLE_ONEDNN_OPTS=0");
}

Finding FrozenWeights(const Machine&, const std::string& value) {
  if (value != "1") return Fine();
  return Verdict(Level::kInfo,
                 "weights are kept in oneDNN's layout: faster, more memory; training with it does "
                 "not see its own updates",
                 "only for serving");
}

Finding Proxy(const Machine& machine, const std::string& value) {
  const std::string* none = machine.Variable("no_proxy");
  if (none == nullptr) none = machine.Variable("NO_PROXY");
  if (value.empty() || (none != nullptr && none->find("localhost") != std::string::npos)) {
    return Fine("not for localhost");
  }
  return Verdict(Level::kWarning,
                 "gRPC clients and TensorFlow's own servers go through it, to neighbours, too",
                 "set no_proxy=localhost,127.0.0.1 and the hosts of the cluster");
}

Finding LegacyKeras(const Machine&, const std::string& value) {
  return {.level = Level::kInfo,
          .why = value == "1" || value == "true" || value == "True"
                     ? "tf.keras is Keras 2 (the package tf_keras must be installed)"
                     : "tf.keras is Keras 3"};
}

Finding KerasBackend(const Machine&, const std::string& value) {
  if (value == "tensorflow") return Fine();
  return Verdict(Level::kWarning, "models made with another backend are no SavedModels",
                 "set KERAS_BACKEND=tensorflow");
}

Finding Deterministic(const Machine&, const std::string&) {
  return {.level = Level::kInfo, .why = "results repeat exactly, and GPU kernels are slower"};
}

Finding Preload(const Machine& machine, const std::string& value) {
  for (const std::string_view library : Split(value, ": ")) {
    if (library.starts_with("/") && !machine.Exists(library)) {
      return Verdict(Level::kWarning, base::Cat(library, " is not there"), "unset it");
    }
  }
  return {.level = Level::kInfo, .why = "these libraries are in every process"};
}

struct Variable {
  const char* name;
  Judge judge;
  const char* unset;  // Said when it is not set; null: then nothing is said.
};

// TF_CONFIG and the numbers of threads have checks of their own.
constexpr Variable kVariables[] = {
    {"TF_CPP_MIN_LOG_LEVEL", LogLevel, "TensorFlow logs everything"},
    {"TF_XLA_FLAGS", XlaFlags, "XLA compiles only what asks for it"},
    {"TF_ENABLE_ONEDNN_OPTS", Onednn, "by processor: see cpu.onednn"},
    {"CUDA_VISIBLE_DEVICES", VisibleDevices, "all GPUs are visible"},
    {"LD_LIBRARY_PATH", LibraryPath, "libraries come from the system's places"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", Growth, "a process takes all memory of its GPUs"},
    {"XLA_FLAGS", PlainXlaFlags, nullptr},
    {"TF_ENABLE_ZENDNN_OPTS", Zendnn, nullptr},
    {"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", FrozenWeights, nullptr},
    {"TF_USE_LEGACY_KERAS", LegacyKeras, nullptr},
    {"KERAS_BACKEND", KerasBackend, nullptr},
    {"TF_DETERMINISTIC_OPS", Deterministic, nullptr},
    {"TF_CUDNN_DETERMINISTIC", Deterministic, nullptr},
    {"LD_PRELOAD", Preload, nullptr},
    {"http_proxy", Proxy, nullptr},
    {"https_proxy", Proxy, nullptr},
};

Finding Look(const Machine& machine, const Variable& variable) {
  const std::string* value = machine.Variable(variable.name);
  Finding finding;
  if (value == nullptr) {
    finding.seen = base::Cat("not set: ", variable.unset);
  } else {
    finding = variable.judge(machine, *value);
    // A proxy's URL may hold a password.
    const bool secret = std::string_view(variable.name).ends_with("_proxy");
    finding.seen = base::Cat(variable.name, "=", secret ? "..." : Printable(*value));
  }
  finding.id = base::Cat("env.", variable.name);
  return finding;
}

}  // namespace

Findings CheckEnvironment(const Machine& machine) {
  Findings findings;
  for (const Variable& variable : kVariables) {
    if (variable.unset == nullptr && machine.Variable(variable.name) == nullptr) continue;
    findings.push_back(Look(machine, variable));
  }
  return findings;
}

}  // namespace tensord::doctor
