// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// libnvidia-ml.so.1 for tests: the same names and layouts, and what it says comes from the file
// that TENSORD_FAKE_NVML names. A line "key value" tells of the machine, after "gpu" of the next
// GPU:
//   driver 550.54.15        cuda 12040          init 0
//   gpu                     name NVIDIA H100    uuid GPU-1  bus 00000000:3B:00.0
//   utilisation 35          memory 85899345920 40000000000  watts 301000 350000
//   celsius 71              clock 1200 1980     reasons 4   capability 9 0
//   mig 0  persistence 1  pcie 16 16  ecc 0   process 4242 1073741824
// A value that a GPU does not have is NOT_SUPPORTED, as on real boards.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "doctor/nvml/abi.h"

namespace nvml = tensord::doctor::nvml;

struct tensord::doctor::nvml::DeviceOpaque {
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::pair<unsigned, unsigned long long>> processes;
};

namespace {

struct Scenario {
  nvml::DeviceOpaque machine;
  std::vector<nvml::DeviceOpaque> gpus;
};

Scenario ReadScenario() {
  Scenario scenario;
  const char* path = std::getenv("TENSORD_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    if (!(words >> key)) continue;
    if (key == "gpu") {
      scenario.gpus.emplace_back();
      continue;
    }
    auto& owner = scenario.gpus.empty() ? scenario.machine : scenario.gpus.back();
    if (key == "process") {
      auto& process = owner.processes.emplace_back();
      words >> process.first >> process.second;
      continue;
    }
    if (key == "name") {
      owner.values[key] = {line.substr(line.find("name ") + 5)};
      continue;
    }
    for (std::string word; words >> word;) owner.values[key].push_back(word);
  }
  return scenario;
}

Scenario& Current() {
  static Scenario scenario;
  return scenario;
}

nvml::Return Number(nvml::Device device, const char* key, size_t index, unsigned long long* out) {
  const auto found = device->values.find(key);
  if (found == device->values.end() || found->second.size() <= index) return nvml::kNotSupported;
  *out = std::strtoull(found->second[index].c_str(), nullptr, 10);
  return nvml::kSuccess;
}

nvml::Return Number(nvml::Device device, const char* key, size_t index, unsigned* out) {
  unsigned long long wide = 0;
  const nvml::Return code = Number(device, key, index, &wide);
  if (code == nvml::kSuccess) *out = static_cast<unsigned>(wide);
  return code;
}

nvml::Return Text(nvml::Device device, const char* key, char* out, unsigned size) {
  const auto found = device->values.find(key);
  if (found == device->values.end()) return nvml::kNotSupported;
  const std::string& text = found->second[0];
  if (text.size() + 1 > size) return nvml::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

}  // namespace

// The names and parameters are NVIDIA's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

nvml::Return nvmlInit_v2() {
  Current() = ReadScenario();
  unsigned code = 0;
  Number(&Current().machine, "init", 0, &code);
  return static_cast<nvml::Return>(code);
}
nvml::Return nvmlShutdown() { return nvml::kSuccess; }
nvml::Return nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return Text(&Current().machine, "driver", text, size);
}
nvml::Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  unsigned value = 0;
  const nvml::Return code = Number(&Current().machine, "cuda", 0, &value);
  *version = static_cast<int>(value);
  return code;
}
nvml::Return nvmlDeviceGetCount_v2(unsigned* count) {
  // Each question is answered from the file as it is now, so that a test can change it.
  Current() = ReadScenario();
  *count = static_cast<unsigned>(Current().gpus.size());
  return nvml::kSuccess;
}
nvml::Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  *device = &Current().gpus[index];
  return nvml::kSuccess;
}
nvml::Return nvmlDeviceGetName(nvml::Device d, char* text, unsigned size) {
  return Text(d, "name", text, size);
}
nvml::Return nvmlDeviceGetUUID(nvml::Device d, char* text, unsigned size) {
  return Text(d, "uuid", text, size);
}
nvml::Return nvmlDeviceGetPciInfo_v3(nvml::Device d, nvml::PciInfo* info) {
  return Text(d, "bus", info->bus_id, sizeof(info->bus_id));
}
nvml::Return nvmlDeviceGetUtilizationRates(nvml::Device d, nvml::Utilization* out) {
  return Number(d, "utilisation", 0, &out->gpu);
}
nvml::Return nvmlDeviceGetMemoryInfo(nvml::Device d, nvml::Memory* out) {
  Number(d, "memory", 1, &out->used);
  return Number(d, "memory", 0, &out->total);
}
nvml::Return nvmlDeviceGetMemoryInfo_v2(nvml::Device d, nvml::MemoryV2* out) {
  if (out->version != nvml::kMemoryV2Version) return nvml::kNotSupported;
  Number(d, "memory", 1, &out->used);
  return Number(d, "memory", 0, &out->total);
}
nvml::Return nvmlDeviceGetPowerUsage(nvml::Device d, unsigned* out) {
  return Number(d, "watts", 0, out);
}
nvml::Return nvmlDeviceGetEnforcedPowerLimit(nvml::Device d, unsigned* out) {
  return Number(d, "watts", 1, out);
}
nvml::Return nvmlDeviceGetTemperature(nvml::Device d, unsigned, unsigned* out) {
  return Number(d, "celsius", 0, out);
}
nvml::Return nvmlDeviceGetClockInfo(nvml::Device d, unsigned, unsigned* out) {
  return Number(d, "clock", 0, out);
}
nvml::Return nvmlDeviceGetMaxClockInfo(nvml::Device d, unsigned, unsigned* out) {
  return Number(d, "clock", 1, out);
}
nvml::Return nvmlDeviceGetCurrentClocksThrottleReasons(nvml::Device d, unsigned long long* out) {
  return Number(d, "reasons", 0, out);
}
nvml::Return nvmlDeviceGetCudaComputeCapability(nvml::Device d, int* major, int* minor) {
  unsigned a = 0;
  unsigned b = 0;
  Number(d, "capability", 1, &b);
  const nvml::Return code = Number(d, "capability", 0, &a);
  *major = static_cast<int>(a);
  *minor = static_cast<int>(b);
  return code;
}
nvml::Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device d, unsigned* count,
                                                     nvml::ProcessInfo* list) {
  const auto& processes = d->processes;
  const auto room = static_cast<size_t>(*count);
  *count = static_cast<unsigned>(processes.size());
  if (processes.size() > room) return nvml::kInsufficientSize;
  for (size_t i = 0; i < processes.size(); ++i) {
    list[i] = {.pid = processes[i].first,
               .used_gpu_memory = processes[i].second,
               .gpu_instance = ~0u,
               .compute_instance = ~0u};
  }
  return nvml::kSuccess;
}
nvml::Return nvmlDeviceGetMigMode(nvml::Device d, unsigned* now, unsigned* pending) {
  *pending = 0;
  return Number(d, "mig", 0, now);
}
nvml::Return nvmlDeviceGetPersistenceMode(nvml::Device d, unsigned* out) {
  return Number(d, "persistence", 0, out);
}
nvml::Return nvmlDeviceGetCurrPcieLinkWidth(nvml::Device d, unsigned* out) {
  return Number(d, "pcie", 0, out);
}
nvml::Return nvmlDeviceGetMaxPcieLinkWidth(nvml::Device d, unsigned* out) {
  return Number(d, "pcie", 1, out);
}
nvml::Return nvmlDeviceGetTotalEccErrors(nvml::Device d, unsigned, unsigned,
                                         unsigned long long* out) {
  return Number(d, "ecc", 0, out);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
