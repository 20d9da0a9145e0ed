// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/runtime_facts.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr int kHotCelsius = 85;
constexpr int kBlackwell = 100;  // From this capability on, wheels up to 2.21 have no kernels.

bool HasBoard(const Machine& machine) {
  for (const std::string& name : machine.List("/sys/bus/pci/devices")) {
    const std::string directory = base::Cat("/sys/bus/pci/devices/", name);
    const std::string kind = machine.ReadOr(base::Cat(directory, "/class"));
    if (Trim(machine.ReadOr(base::Cat(directory, "/vendor"))) == "0x10de" &&
        kind.starts_with("0x03")) {
      return true;
    }
  }
  return false;
}

bool InContainer(const Machine& machine) {
  return machine.Exists("/.dockerenv") || machine.Exists("/run/.containerenv") ||
         machine.Variable("KUBERNETES_SERVICE_HOST") != nullptr;
}

Finding NoGpu(const Machine& machine) {
  Finding finding{.id = "gpu.driver", .level = Level::kInfo, .seen = machine.gpus.problem};
  const bool container = InContainer(machine);
  const bool asked = machine.Variable("NVIDIA_VISIBLE_DEVICES") != nullptr;
  if (container && (asked || HasBoard(machine))) {
    finding.level = Level::kError;
    finding.why = "this container was meant to have GPUs, and the container toolkit gave it none";
    finding.action =
        "install nvidia-container-toolkit on the host and start with --gpus all (in "
        "Kubernetes: the device plugin and a limit on nvidia.com/gpu)";
  } else if (HasBoard(machine)) {
    finding.level = Level::kError;
    finding.why = "there is an NVIDIA board in this machine, and it cannot be used";
    finding.action = machine.gpus.library ? "load the driver: modprobe nvidia; after an upgrade of "
                                            "the driver restart the machine"
                                          : "install the NVIDIA driver";
  } else {
    finding.seen += "; TensorFlow computes on the CPU";
  }
  return finding;
}

// "12.4" of 12040.
std::string CudaText(int version) { return base::Cat(version / 1000, ".", version % 1000 / 10); }

Finding Driver(const Machine& machine, const RuntimeFacts& facts) {
  const nvml::Gpus& gpus = machine.gpus;
  const std::string runs = gpus.cuda_version ? CudaText(*gpus.cuda_version) : "";
  Finding finding{.id = "gpu.driver",
                  .seen = base::Cat("driver ", gpus.driver_version,
                                    runs.empty() ? "" : base::Cat(", runs CUDA up to ", runs))};
  const TestedBuild* tested = TestedBuildOf(facts.version);
  if (tested == nullptr || runs.empty()) return finding;
  const int major = CompareVersions(runs.substr(0, runs.find('.')),
                                    tested->cuda.substr(0, tested->cuda.find('.')));
  if (major < 0) {
    finding.level = Level::kError;
    finding.why =
        base::Cat("TensorFlow ", facts.version, " was built and tested with CUDA ", tested->cuda);
    finding.action = "install a newer driver: 525.60 or later runs CUDA 12";
  } else if (CompareVersions(runs, tested->cuda) < 0) {
    finding.level = Level::kInfo;
    finding.why =
        base::Cat("older than the CUDA ", tested->cuda, " that TensorFlow ", facts.version,
                  " was tested with: works by minor-version "
                  "compatibility, but kernels cannot be compiled when they run (XLA)");
    finding.action = "install a newer driver when you can";
  }
  return finding;
}

Finding Wheel(const RuntimeFacts& facts) {
  if (facts.directory.empty() || facts.cuda) {
    return {.id = "gpu.wheel",
            .seen = facts.cuda ? base::Cat("the wheel was built for CUDA ", facts.cuda_version,
                                           " and cuDNN ", facts.cudnn_version)
                               : "no TensorFlow to compare with"};
  }
  return {.id = "gpu.wheel",
          .level = Level::kWarning,
          .seen = base::Cat("there are GPUs, but the wheel ", facts.wheel, " is for CPUs"),
          .why = "nothing will run on the GPUs",
          .action = base::Cat("pip install 'tensorflow[and-cuda]==", facts.version, "'")};
}

// Whether some directory of the usual ones has a file whose name begins so; its full path.
std::string FindLibrary(const Machine& machine, const RuntimeFacts& facts, std::string_view name) {
  std::vector<std::string> places;
  if (const std::string* path = machine.Variable("LD_LIBRARY_PATH")) {
    for (const std::string_view place : Split(*path, ":")) places.emplace_back(place);
  }
  const std::string wheels = base::Cat(facts.site_packages, "/nvidia");
  for (const std::string& package : machine.List(wheels)) {
    places.push_back(base::Cat(wheels, "/", package, "/lib"));
  }
  for (const char* place : {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"}) {
    places.emplace_back(place);
  }
  for (const std::string& place : places) {
    for (const std::string& file : machine.List(place)) {
      if (file.starts_with(name)) return base::Cat(place, "/", file);
    }
  }
  return "";
}

void AddLibraries(const Machine& machine, const RuntimeFacts& facts, Findings* findings) {
  const TestedBuild* tested = TestedBuildOf(facts.version);
  if (!facts.cuda || tested == nullptr) return;
  for (const auto& [id, library, version] :
       {std::tuple("gpu.cuda", "libcudart.so.", tested->cuda),
        std::tuple("gpu.cudnn", "libcudnn.so.", tested->cudnn)}) {
    const std::string_view major = version.substr(0, version.find('.'));
    const std::string found = FindLibrary(machine, facts, base::Cat(library, major));
    if (!found.empty()) {
      findings->push_back({.id = id, .seen = base::Cat(found, " (tested with ", version, ")")});
      continue;
    }
    const std::string other = FindLibrary(machine, facts, library);
    findings->push_back(
        {.id = id,
         .level = Level::kError,
         .seen = other.empty() ? base::Cat(library, major, " was not found")
                               : base::Cat("only ", other, ", not ", library, major),
         .why = base::Cat("TensorFlow ", facts.version, " needs it (tested with ", version,
                          ") and runs on the CPU without a word when it is missing"),
         .action = base::Cat("pip install 'tensorflow[and-cuda]==", facts.version,
                             "', or put its directory on LD_LIBRARY_PATH")});
  }
}

Finding Capability(const std::string& id, const nvml::Gpu& gpu, const RuntimeFacts& facts) {
  const int has = *gpu.capability;
  const std::string text = base::Cat(has / 10, ".", has % 10);
  bool native = false;
  bool compiled = false;  // When it runs, from PTX.
  for (const std::string& built : facts.capabilities) {
    const auto number = ToNumber(built.substr(built.find('_') + 1)).value_or(0);
    if (built.starts_with("sm_") && number / 10 == has / 10 && number <= has) native = true;
    if (built.starts_with("compute_") && number <= has) {
      compiled = true;
      native |= number / 10 == has / 10;
    }
  }
  Finding finding{.id = base::Cat(id, ".capability"),
                  .seen = base::Cat(gpu.name, ": compute capability ", text)};
  if (native) return finding;
  finding.seen += base::Cat("; the wheel has kernels for ", Join(facts.capabilities, ", "));
  if (compiled && has < kBlackwell) {
    finding.level = Level::kInfo;
    finding.why = "kernels are compiled when they first run: the first start takes minutes";
    finding.action = "keep ~/.nv/ComputeCache between starts, with CUDA_CACHE_MAXSIZE=4294967296";
    return finding;
  }
  finding.level = Level::kError;
  finding.why = compiled ? "with such GPUs these wheels end with CUDA_ERROR_INVALID_PTX"
                         : "the GPU is older than every kernel in the wheel";
  finding.action = compiled ? "use a TensorFlow built for this capability (NVIDIA's container, or "
                              "your own build)"
                            : "use an older TensorFlow (2.16 was the last with Maxwell) or the CPU";
  return finding;
}

void AddThrottle(const std::string& id, const nvml::Gpu& gpu, Findings* findings) {
  const std::string words = nvml::ThrottleWords(gpu.clock_reasons.value_or(0));
  if (words.empty()) return;
  const bool heat = words.find("heat") != std::string::npos;
  findings->push_back(
      {.id = base::Cat(id, ".throttled"),
       .level = Level::kWarning,
       .seen = base::Cat(gpu.name, " is slowed down: ", words,
                         gpu.celsius ? base::Cat(", ", *gpu.celsius, " C") : "",
                         gpu.watts ? base::Cat(", ", Fixed(*gpu.watts, 0), " W of ",
                                               Fixed(gpu.watts_limit.value_or(0), 0))
                                   : ""),
       .why = "the same work takes longer, and unevenly so",
       .action = heat ? "better cooling, or a lower limit with nvidia-smi -pl"
                      : "raise the limit with nvidia-smi -pl, if the board may"});
}

void AddBoard(const std::string& id, const nvml::Gpu& gpu, Findings* findings) {
  const uint64_t free = gpu.memory_bytes - std::min(gpu.memory_bytes, gpu.memory_used);
  Finding memory{.id = base::Cat(id, ".memory"),
                 .seen = base::Cat(gpu.name, ": ", Bytes(free), " of ", Bytes(gpu.memory_bytes),
                                   " free; processes: ", gpu.processes.size())};
  if (gpu.memory_bytes > 0 && free < gpu.memory_bytes / 10) {
    memory.level = Level::kWarning;
    memory.why = "TensorFlow takes all memory of a GPU by default; the next process finds none";
    memory.action =
        "TF_FORCE_GPU_ALLOW_GROWTH=true for those that share it; nvidia-smi shows whose "
        "it is";
  }
  findings->push_back(std::move(memory));
  AddThrottle(id, gpu, findings);
  if (gpu.celsius.value_or(0) >= kHotCelsius) {
    findings->push_back({.id = base::Cat(id, ".temperature"),
                         .level = Level::kWarning,
                         .seen = base::Cat(gpu.name, " is at ", *gpu.celsius, " C"),
                         .action = "see to its cooling before it slows down"});
  }
  if (gpu.ecc_uncorrected.value_or(0) > 0) {
    findings->push_back({.id = base::Cat(id, ".ecc"),
                         .level = Level::kError,
                         .seen = base::Cat(gpu.name, ": ", *gpu.ecc_uncorrected,
                                           " uncorrected memory errors since the driver loaded"),
                         .why = "results may be wrong, and processes die",
                         .action = "reset the GPU; if they come back have it replaced"});
  }
  if (gpu.pcie_width && gpu.pcie_width_max && *gpu.pcie_width < *gpu.pcie_width_max) {
    findings->push_back(
        {.id = base::Cat(id, ".pcie"),
         .level = Level::kInfo,
         .seen = base::Cat(gpu.name, ": ", *gpu.pcie_width, " PCIe lanes of ", *gpu.pcie_width_max),
         .why = "batches reach it more slowly; some boards save lanes when idle",
         .action = "look again under load; if it stays, see to slot and riser"});
  }
  if (gpu.mig.value_or(false)) {
    findings->push_back(
        {.id = base::Cat(id, ".mig"),
         .level = Level::kInfo,
         .seen = base::Cat(gpu.name, " is split (MIG)"),
         .why = "a process sees one instance, and many counters are not available"});
  }
  if (!gpu.persistence.value_or(true)) {
    findings->push_back({.id = base::Cat(id, ".persistence"),
                         .level = Level::kInfo,
                         .seen = base::Cat(gpu.name, ": persistence mode is off"),
                         .why = "the first process after a pause waits seconds for the driver",
                         .action = "run nvidia-persistenced"});
  }
}

}  // namespace

Findings CheckGpus(const Machine& machine) {
  if (!machine.gpus.problem.empty()) return {NoGpu(machine)};
  const RuntimeFacts facts = ReadRuntime(machine);
  Findings findings = {Driver(machine, facts), Wheel(facts)};
  AddLibraries(machine, facts, &findings);
  for (size_t i = 0; i < machine.gpus.gpus.size(); ++i) {
    const nvml::Gpu& gpu = machine.gpus.gpus[i];
    const std::string id = base::Cat("gpu.", i);
    if (gpu.capability.has_value() && !facts.capabilities.empty()) {
      findings.push_back(Capability(id, gpu, facts));
    }
    AddBoard(id, gpu, &findings);
  }
  return findings;
}

}  // namespace tensord::doctor
