// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/nvml/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/text.h"
#include "doctor/nvml/abi.h"

namespace tensord::doctor::nvml {
namespace {

constexpr unsigned kGpusMax = 64;         // A chassis holds 16; with MIG 7 times 8.
constexpr unsigned kProcessesMax = 1024;  // Of one GPU; a server has tens.
constexpr char kLibraryName[] = "libnvidia-ml.so.1";

struct Functions {
#define TENSORD_NVML_MEMBER(name, parameters) Return(*name) parameters = nullptr;
  TENSORD_NVML_REQUIRED(TENSORD_NVML_MEMBER)
  TENSORD_NVML_OPTIONAL(TENSORD_NVML_MEMBER)
#undef TENSORD_NVML_MEMBER
};

struct Closer {
  void operator()(void* library) const { dlclose(library); }
};
using Handle = std::unique_ptr<void, Closer>;

// The first required function that is not there; empty when all are.
std::string Resolve(void* library, Functions* functions) {
  std::string missing;
#define TENSORD_NVML_RESOLVE(name, parameters)                    \
  if (void* found = dlsym(library, #name); found != nullptr) {    \
    functions->name = std::bit_cast<Return(*) parameters>(found); \
  }
#define TENSORD_NVML_REQUIRE(name, parameters) \
  if (functions->name == nullptr && missing.empty()) missing = #name;
  TENSORD_NVML_REQUIRED(TENSORD_NVML_RESOLVE)
  TENSORD_NVML_OPTIONAL(TENSORD_NVML_RESOLVE)
  TENSORD_NVML_REQUIRED(TENSORD_NVML_REQUIRE)
#undef TENSORD_NVML_RESOLVE
#undef TENSORD_NVML_REQUIRE
  return missing;
}

std::string InitProblem(Return code) {
  switch (code) {
    case kDriverNotLoaded:
      return "the NVIDIA driver is not loaded";
    case kLibraryVersionMismatch:
      return "the driver in the kernel and its libraries are of different versions";
    default:
      return base::Cat("NVML cannot start (error ", code, ")");
  }
}

// Calls a function that gives one value; empty when it is not there or fails.
template <typename T, typename Function, typename... Arguments>
std::optional<T> Ask(Function function, Arguments... arguments) {
  T value{};
  if (function == nullptr || function(arguments..., &value) != kSuccess) return std::nullopt;
  return value;
}

std::optional<int> ToInt(std::optional<unsigned> value) {
  if (!value.has_value()) return std::nullopt;
  return static_cast<int>(std::min(*value, 1u << 30));
}

std::optional<double> FromMilli(std::optional<unsigned> value) {
  if (!value.has_value()) return std::nullopt;
  return *value / 1000.0;
}

std::string Text(Return (*function)(Device, char*, unsigned), Device device) {
  std::array<char, kTextBytes> text{};
  if (function == nullptr || function(device, text.data(), kTextBytes - 1) != kSuccess) return "";
  return text.data();
}

class RealLibrary final : public Library {
 public:
  RealLibrary(Handle handle, Functions functions)
      : handle_(std::move(handle)), f_(functions), started_(f_.nvmlInit_v2()) {}
  ~RealLibrary() override {
    if (started_ == kSuccess) f_.nvmlShutdown();
  }

  Gpus Read() override {
    Gpus all{.problem = {}, .library = true, .driver_version = {}, .cuda_version = {}, .gpus = {}};
    if (started_ != kSuccess) {
      all.problem = InitProblem(started_);
      return all;
    }
    std::array<char, kTextBytes> text{};
    if (f_.nvmlSystemGetDriverVersion(text.data(), kTextBytes - 1) == kSuccess) {
      all.driver_version = text.data();
    }
    all.cuda_version = Ask<int>(f_.nvmlSystemGetCudaDriverVersion_v2);
    const unsigned count = Ask<unsigned>(f_.nvmlDeviceGetCount_v2).value_or(0);
    for (unsigned i = 0; i < std::min(count, kGpusMax); ++i) {
      Device device = nullptr;
      if (f_.nvmlDeviceGetHandleByIndex_v2(i, &device) == kSuccess) {
        all.gpus.push_back(ReadGpu(device));
      }
    }
    if (all.gpus.empty()) all.problem = "the driver works, but there is no GPU";
    return all;
  }

 private:
  Gpu ReadGpu(Device device) const {
    Gpu gpu;
    gpu.name = Text(f_.nvmlDeviceGetName, device);
    gpu.uuid = Text(f_.nvmlDeviceGetUUID, device);
    if (const auto pci = Ask<PciInfo>(f_.nvmlDeviceGetPciInfo_v3, device); pci.has_value()) {
      const char* end = std::find(pci->bus_id, pci->bus_id + sizeof(pci->bus_id), '\0');
      gpu.bus_id.assign(pci->bus_id, end);
    }
    ReadLoad(device, &gpu);
    ReadState(device, &gpu);
    ReadProcesses(device, &gpu);
    return gpu;
  }

  void ReadLoad(Device device, Gpu* gpu) const {
    const auto use = Ask<Utilization>(f_.nvmlDeviceGetUtilizationRates, device);
    if (use.has_value()) gpu->utilisation = static_cast<int>(std::min(use->gpu, 100u));
    MemoryV2 memory{};
    memory.version = kMemoryV2Version;
    if (f_.nvmlDeviceGetMemoryInfo_v2 != nullptr &&
        f_.nvmlDeviceGetMemoryInfo_v2(device, &memory) == kSuccess) {
      gpu->memory_bytes = memory.total;
      gpu->memory_used = memory.used;
    } else if (const auto old = Ask<Memory>(f_.nvmlDeviceGetMemoryInfo, device)) {
      gpu->memory_bytes = old->total;
      gpu->memory_used = old->used;
    }
    gpu->watts = FromMilli(Ask<unsigned>(f_.nvmlDeviceGetPowerUsage, device));
    gpu->watts_limit = FromMilli(Ask<unsigned>(f_.nvmlDeviceGetEnforcedPowerLimit, device));
    gpu->celsius = ToInt(Ask<unsigned>(f_.nvmlDeviceGetTemperature, device, kTemperatureGpu));
    gpu->sm_megahertz = ToInt(Ask<unsigned>(f_.nvmlDeviceGetClockInfo, device, kClockSm));
    gpu->sm_megahertz_max = ToInt(Ask<unsigned>(f_.nvmlDeviceGetMaxClockInfo, device, kClockSm));
    auto reasons = Ask<unsigned long long>(f_.nvmlDeviceGetCurrentClocksEventReasons, device);
    if (!reasons.has_value()) {  // The name that it had before driver 535.
      reasons = Ask<unsigned long long>(f_.nvmlDeviceGetCurrentClocksThrottleReasons, device);
    }
    if (reasons.has_value()) gpu->clock_reasons = *reasons;
  }

  void ReadState(Device device, Gpu* gpu) const {
    int major = 0;
    int minor = 0;
    if (f_.nvmlDeviceGetCudaComputeCapability != nullptr &&
        f_.nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == kSuccess) {
      gpu->capability = major * 10 + minor;
    }
    unsigned mig = 0;
    unsigned pending = 0;
    if (f_.nvmlDeviceGetMigMode != nullptr &&
        f_.nvmlDeviceGetMigMode(device, &mig, &pending) == kSuccess) {
      gpu->mig = mig != 0;
    }
    if (const auto on = Ask<unsigned>(f_.nvmlDeviceGetPersistenceMode, device)) {
      gpu->persistence = *on != 0;
    }
    gpu->pcie_width = ToInt(Ask<unsigned>(f_.nvmlDeviceGetCurrPcieLinkWidth, device));
    gpu->pcie_width_max = ToInt(Ask<unsigned>(f_.nvmlDeviceGetMaxPcieLinkWidth, device));
    const auto errors = Ask<unsigned long long>(f_.nvmlDeviceGetTotalEccErrors, device,
                                                kEccUncorrected, kEccVolatile);
    if (errors.has_value()) gpu->ecc_uncorrected = *errors;
  }

  void ReadProcesses(Device device, Gpu* gpu) const {
    if (f_.nvmlDeviceGetComputeRunningProcesses_v3 == nullptr) return;
    std::vector<ProcessInfo> list(kProcessesMax);
    unsigned count = kProcessesMax;
    if (f_.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list.data()) != kSuccess) return;
    for (unsigned i = 0; i < std::min(count, kProcessesMax); ++i) {
      GpuProcess& process = gpu->processes.emplace_back();
      process.pid = list[i].pid;
      if (list[i].used_gpu_memory != ~0ull) process.bytes = list[i].used_gpu_memory;
    }
  }

  const Handle handle_;
  const Functions f_;
  const Return started_;
};

class NoLibrary final : public Library {
 public:
  NoLibrary(std::string problem, bool installed)
      : problem_(std::move(problem)), installed_(installed) {}
  Gpus Read() override {
    return {.problem = problem_,
            .library = installed_,
            .driver_version = {},
            .cuda_version = {},
            .gpus = {}};
  }

 private:
  const std::string problem_;
  const bool installed_;
};

}  // namespace

std::unique_ptr<Library> OpenLibrary() {
  Handle handle(dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL));
  if (handle == nullptr) {
    return std::make_unique<NoLibrary>(
        base::Cat("no NVIDIA driver here (", kLibraryName, " is not installed)"), false);
  }
  Functions functions;
  const std::string missing = Resolve(handle.get(), &functions);
  if (!missing.empty()) {
    return std::make_unique<NoLibrary>(
        base::Cat(kLibraryName, " has no function ", missing, ": the driver is too old"), true);
  }
  return std::make_unique<RealLibrary>(std::move(handle), functions);
}

Gpus ReadGpus() { return OpenLibrary()->Read(); }

std::string ThrottleWords(uint64_t reasons) {
  constexpr std::pair<uint64_t, std::string_view> kWords[] = {
      {kReasonPowerCap, "power cap"},
      {kReasonHardwareSlowdown, "hardware slowdown"},
      {kReasonSoftwareThermal, "heat (software)"},
      {kReasonHardwareThermal, "heat (hardware)"},
      {kReasonPowerBrake, "power brake"},
  };
  std::string text;
  for (const auto& [bit, word] : kWords) {
    if ((reasons & bit) != 0) text += base::Cat(text.empty() ? "" : ", ", word);
  }
  return text;
}

}  // namespace tensord::doctor::nvml
