// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/cpus.h"

namespace tensord::doctor {
namespace {

Finding Baseline(const Cpus& cpus) {
  if (cpus.flags.empty()) {
    return {.id = "cpu.avx",
            .level = Level::kWarning,
            .seen = "the processor's features are not known: /proc/cpuinfo has no flags",
            .why = "TensorFlow's wheels need AVX on x86"};
  }
  if (cpus.Has("avx"))
    return {.id = "cpu.avx", .seen = "AVX is there, as TensorFlow's wheels need"};
  return {.id = "cpu.avx",
          .level = Level::kError,
          .seen = "no AVX",
          .why = "TensorFlow's wheels are compiled for AVX: they end with \"Illegal instruction\"",
          .action =
              "use another machine; in a virtual machine give the guest the host's CPU model; "
              "or build TensorFlow for this processor"};
}

// What oneDNN and XLA choose among when they run.
Finding Dispatch(const Cpus& cpus) {
  std::string found;
  for (const auto& [flag, name] :
       {std::pair("avx2", "AVX2"), std::pair("fma", "FMA"), std::pair("avx512f", "AVX-512"),
        std::pair("avx512_vnni", "AVX-512 VNNI"), std::pair("avx_vnni", "AVX VNNI"),
        std::pair("avx512_bf16", "AVX-512 BF16"), std::pair("avx512_fp16", "AVX-512 FP16"),
        std::pair("amx_int8", "AMX int8"), std::pair("amx_bf16", "AMX bf16")}) {
    if (cpus.Has(flag)) found += base::Cat(found.empty() ? "" : ", ", name);
  }
  Finding finding{.id = "cpu.features",
                  .level = Level::kInfo,
                  .seen = base::Cat(cpus.name.empty() ? "processor" : cpus.name, ": ",
                                    found.empty() ? "nothing beyond AVX" : found),
                  .why =
                      "TensorFlow's own kernels use AVX only; oneDNN and XLA use all of these "
                      "when they run"};
  if (!cpus.Has("avx2")) {
    finding.level = Level::kWarning;
    finding.action = "expect a fraction of the speed of a processor with AVX2";
  }
  return finding;
}

Finding Onednn(const Machine& machine, const Cpus& cpus) {
  const std::string* set = machine.Variable("TF_ENABLE_ONEDNN_OPTS");
  const bool on = set == nullptr ? cpus.OnednnByDefault() : *set != "0";
  Finding finding{.id = "cpu.onednn",
                  .seen = base::Cat("oneDNN is ", on ? "on" : "off",
                                    set == nullptr ? " by default on this processor"
                                                   : " by TF_ENABLE_ONEDNN_OPTS")};
  if (on) return finding;
  finding.level = Level::kWarning;
  finding.why =
      "convolutions run 1.3 to 2.4 times faster with it; a few models with small or "
      "irregular shapes run slower";
  finding.action = "measure your model with TF_ENABLE_ONEDNN_OPTS=1";
  return finding;
}

Finding BFloat16(const Cpus& cpus) {
  const bool native = cpus.Has("avx512_bf16") || cpus.Has("amx_bf16");
  return {
      .id = "cpu.bfloat16",
      .level = Level::kInfo,
      .seen = native ? "bfloat16 is computed by the processor" : "bfloat16 is only emulated here",
      .why = native ? "--mixed_precision=bfloat16 can pay, but does not always: casts at the "
                      "borders cost, and results differ slightly"
                    : "a model in bfloat16 is slower than one in float32",
      .action = native ? "measure speed and accuracy before turning it on" : ""};
}

}  // namespace

Findings CheckCpu(const Machine& machine) {
  const Cpus cpus = ReadCpus(machine);
  Findings findings = {Baseline(cpus)};
  if (cpus.flags.empty()) return findings;
  findings.push_back(Dispatch(cpus));
  findings.push_back(Onednn(machine, cpus));
  findings.push_back(BFloat16(cpus));
  return findings;
}

}  // namespace tensord::doctor
