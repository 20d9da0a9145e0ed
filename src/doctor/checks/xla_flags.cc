// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/checks/xla_flags.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

// Of libtensorflow_cc.so.2 2.21.
constexpr std::array<std::string_view, 43> kFlags = {
    "tf_introduce_floating_point_jitter_amount",
    "tf_introduce_floating_point_jitter_to_tensors",
    "tf_mlir_enable_convert_control_to_data_outputs_pass",
    "tf_mlir_enable_merge_control_flow_pass",
    "tf_mlir_enable_mlir_bridge",
    "tf_mlir_enable_multiple_local_cpu_devices",
    "tf_mlir_enable_strict_clusters",
    "tf_mlir_enable_tpu_variable_runtime_reformatting_pass",
    "tf_mlir_enable_composite_tpuexecute_side_effects",
    "tf_xla_always_defer_compilation",
    "tf_xla_async_compilation",
    "tf_xla_auto_jit",
    "tf_xla_call_module_disabled_checks",
    "tf_xla_check_cluster_input_numerics",
    "tf_xla_check_cluster_output_numerics",
    "tf_xla_cluster_exclude_ops",
    "tf_xla_clustering_debug",
    "tf_xla_clustering_fuel",
    "tf_xla_compile_on_demand",
    "tf_xla_cpu_global_jit",
    "tf_xla_deterministic_cluster_names",
    "tf_xla_disable_constant_folding",
    "tf_xla_disable_deadness_safety_checks_for_debugging",
    "tf_xla_disable_full_embedding_pipelining",
    "tf_xla_disable_full_embedding_pipelining_with_summaries",
    "tf_xla_disable_resource_variable_safety_checks_for_debugging",
    "tf_xla_disable_strict_signature_checks",
    "tf_xla_embedding_parallel_iterations",
    "tf_xla_enable_device_api_for_gpu",
    "tf_xla_enable_lazy_compilation",
    "tf_xla_enable_xla_devices",
    "tf_xla_max_cluster_size",
    "tf_xla_min_cluster_size",
    "tf_xla_ops_to_cluster",
    "tf_xla_persistent_cache_device_types",
    "tf_xla_persistent_cache_directory",
    "tf_xla_persistent_cache_prefix",
    "tf_xla_persistent_cache_read_only",
    "tf_xla_print_cluster_outputs",
    "tf_xla_use_device_api",
    "tf_xla_use_device_api_for_auto_jit",
    "tf_xla_use_device_api_for_compile_on_demand",
    "tf_xla_use_device_api_for_xla_launch",
};

}  // namespace

std::string XlaFlagsProblem(std::string_view value) {
  for (const std::string_view word : Split(value, " \t\n")) {
    if (!word.starts_with("--")) return base::Cat(word, " is no flag: flags begin with --");
    const std::string_view name = word.substr(2, word.find('=') - 2);
    // The sparse-core ones are many and for TPUs only.
    if (name.starts_with("tf_xla_sparse_core_")) continue;
    if (std::ranges::find(kFlags, name) == kFlags.end()) {
      return base::Cat("--", name, " is not a flag of TensorFlow 2.21");
    }
  }
  return "";
}

}  // namespace tensord::doctor
