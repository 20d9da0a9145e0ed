// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// What NVIDIA's management library tells, as values. Empty: the driver or the board does not say.
namespace tensord::doctor::nvml {

struct GpuProcess {
  uint32_t pid = 0;
  std::optional<uint64_t> bytes;
};

struct Gpu {
  std::string name;
  std::string uuid;
  std::string bus_id;              // "00000000:3B:00.0"
  std::optional<int> utilisation;  // Percent of time with a kernel running.
  uint64_t memory_bytes = 0;
  uint64_t memory_used = 0;  // Without what the driver keeps for itself.
  std::optional<double> watts;
  std::optional<double> watts_limit;
  std::optional<int> celsius;
  std::optional<int> sm_megahertz;
  std::optional<int> sm_megahertz_max;
  std::optional<uint64_t> clock_reasons;  // kReason... bits.
  std::optional<int> capability;          // 90: compute capability 9.0.
  std::optional<bool> mig;
  std::optional<bool> persistence;
  std::optional<int> pcie_width;
  std::optional<int> pcie_width_max;
  std::optional<uint64_t> ecc_uncorrected;  // Since the driver was loaded.
  std::vector<GpuProcess> processes;
};

struct Gpus {
  // Why there is nothing to see: no library, no driver, no right. Empty when the library works.
  std::string problem;
  bool library = false;             // It is installed.
  std::string driver_version;       // "550.54.15"
  std::optional<int> cuda_version;  // 12040: the newest CUDA that the driver runs.
  std::vector<Gpu> gpus;
};

// The library, opened and started. Threads: one at a time.
class Library {
 public:
  virtual ~Library() = default;
  virtual Gpus Read() = 0;
};

// Never null: without the library every Read says why.
std::unique_ptr<Library> OpenLibrary();

// Opens, reads once, closes.
Gpus ReadGpus();

// "power cap, heat (software)": reasons of the bits that cost speed; empty when none does.
std::string ThrottleWords(uint64_t reasons);

}  // namespace tensord::doctor::nvml
