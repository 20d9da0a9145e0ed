// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/missing_op.h"

#include <array>

#include "base/text.h"

namespace tensord::engine {
namespace {

// How the names of a package's ops begin.
struct Package {
  std::string_view prefix;
  std::string_view name;
  std::string_view libraries;  // Where in the installed package; empty: another way out is said.
  std::string_view advice = "";
};

constexpr std::array kPackages = {
    Package{"TFText>", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"CaseFoldUTF8", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"NormalizeUTF8", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"FastWordpiece", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"FastBert", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"Wordpiece", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"WhitespaceTokenize", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"UnicodeScriptTokenize", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"Sentencepiece", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"SentenceFragments", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"SplitMergeTokenize", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"RegexSplitWithOffsets", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"RougeL", "tensorflow-text", "tensorflow_text/python/ops/*.so"},
    Package{"Addons>", "tensorflow-addons", "tensorflow_addons/custom_ops/*/*.so"},
    Package{"Scann>", "scann", "scann/scann_ops/cc/*.so"},
    Package{"IO>", "tensorflow-io", "tensorflow_io/python/ops/*.so"},
    Package{"SimpleML", "tensorflow_decision_forests",
            "tensorflow_decision_forests/tensorflow/ops/inference/*.so"},
    Package{"TFRA>", "tensorflow-recommenders-addons",
            "tensorflow_recommenders_addons/dynamic_embedding/core/*.so"},
    Package{"Horovod", "horovod", "", "it trains on many machines: export a graph without it"},
    Package{"TRTEngineOp", "TensorFlow with TensorRT", "",
            "TensorFlow dropped it in 2.18: export the model as it was before the conversion"},
    Package{"PyFunc", "Python itself", "",
            "no Python runs in this server: export the model without tf.numpy_function"},
    Package{"EagerPyFunc", "Python itself", "",
            "no Python runs in this server: export the model without tf.py_function"},
};

// What stands between quotes behind `before`.
std::string_view QuotedAfter(std::string_view words, std::string_view before) {
  const size_t at = words.find(before);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = words.substr(at + before.size());
  return rest.substr(0, rest.find('\''));
}

}  // namespace

std::string_view MissingOp(std::string_view words) {
  for (const std::string_view before :
       {"Op type not registered '", "No OpKernel was registered to support Op '", "Unknown op: '",
        "no OpKernel was registered to support Op '"}) {
    const std::string_view op = QuotedAfter(words, before);
    if (!op.empty()) return op;
  }
  return {};
}

std::string HelpForOp(std::string_view op) {
  for (const Package& package : kPackages) {
    if (!op.starts_with(package.prefix)) continue;
    if (package.libraries.empty()) {
      return base::Cat("op ", op, " comes from ", package.name, "; ", package.advice);
    }
    return base::Cat("op ", op, " comes from the package ", package.name,
                     ": give its libraries (in site-packages: ", package.libraries,
                     ") with --op_library or the model's op_libraries setting; they must be built "
                     "for this TensorFlow version");
  }
  return base::Cat("op ", op,
                   " is in no library that was loaded: give the shared library that registers it "
                   "with --op_library or the model's op_libraries setting");
}

absl::Status ExplainMissingOp(const absl::Status& status) {
  const std::string_view op = MissingOp(base::Message(status));
  if (status.ok() || op.empty()) return status;
  return absl::Status(status.code(), base::Cat(base::Message(status), " (", HelpForOp(op), ")"));
}

}  // namespace tensord::engine
