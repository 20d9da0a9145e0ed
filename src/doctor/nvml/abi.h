// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

// The part of NVIDIA's nvml.h that we call, declared by us: the library comes with the driver, the
// header only with the toolkit. Layouts and names are those of the header of CUDA 12; the versioned
// names (_v2, _v3) pin them.
namespace tensord::doctor::nvml {

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kLibraryVersionMismatch = 18;

struct DeviceOpaque;
using Device = DeviceOpaque*;

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned version;  // kMemoryV2Version
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
inline constexpr unsigned kMemoryV2Version = sizeof(MemoryV2) | (2u << 24);

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_sub_system_id;
  char bus_id[32];
};

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_gpu_memory;  // All bits set: not known.
  unsigned gpu_instance;
  unsigned compute_instance;
};

static_assert(sizeof(MemoryV2) == 40 && sizeof(PciInfo) == 68 && sizeof(ProcessInfo) == 24);

inline constexpr unsigned kTemperatureGpu = 0;
inline constexpr unsigned kClockSm = 1;
inline constexpr unsigned kEccUncorrected = 1;
inline constexpr unsigned kEccVolatile = 0;
inline constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, and the UUID's.

// Why a GPU's clocks are lower than they could be.
inline constexpr uint64_t kReasonIdle = 0x1;
inline constexpr uint64_t kReasonApplicationClocks = 0x2;
inline constexpr uint64_t kReasonPowerCap = 0x4;
inline constexpr uint64_t kReasonHardwareSlowdown = 0x8;
inline constexpr uint64_t kReasonSyncBoost = 0x10;
inline constexpr uint64_t kReasonSoftwareThermal = 0x20;
inline constexpr uint64_t kReasonHardwareThermal = 0x40;
inline constexpr uint64_t kReasonPowerBrake = 0x80;
inline constexpr uint64_t kReasonDisplay = 0x100;

// X(name, parameters): functions of the library, all returning Return. Those of the first list must
// be there; of the second, old drivers lack some.
#define TENSORD_NVML_REQUIRED(X)                           \
  X(nvmlInit_v2, (void))                                   \
  X(nvmlShutdown, (void))                                  \
  X(nvmlSystemGetDriverVersion, (char*, unsigned))         \
  X(nvmlDeviceGetCount_v2, (unsigned*))                    \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, Device*))    \
  X(nvmlDeviceGetName, (Device, char*, unsigned))          \
  X(nvmlDeviceGetUtilizationRates, (Device, Utilization*)) \
  X(nvmlDeviceGetMemoryInfo, (Device, Memory*))

#define TENSORD_NVML_OPTIONAL(X)                                                \
  X(nvmlSystemGetCudaDriverVersion_v2, (int*))                                  \
  X(nvmlDeviceGetUUID, (Device, char*, unsigned))                               \
  X(nvmlDeviceGetPciInfo_v3, (Device, PciInfo*))                                \
  X(nvmlDeviceGetMemoryInfo_v2, (Device, MemoryV2*))                            \
  X(nvmlDeviceGetPowerUsage, (Device, unsigned*))                               \
  X(nvmlDeviceGetEnforcedPowerLimit, (Device, unsigned*))                       \
  X(nvmlDeviceGetTemperature, (Device, unsigned, unsigned*))                    \
  X(nvmlDeviceGetClockInfo, (Device, unsigned, unsigned*))                      \
  X(nvmlDeviceGetMaxClockInfo, (Device, unsigned, unsigned*))                   \
  X(nvmlDeviceGetCurrentClocksEventReasons, (Device, unsigned long long*))      \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (Device, unsigned long long*))   \
  X(nvmlDeviceGetCudaComputeCapability, (Device, int*, int*))                   \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (Device, unsigned*, ProcessInfo*)) \
  X(nvmlDeviceGetMigMode, (Device, unsigned*, unsigned*))                       \
  X(nvmlDeviceGetPersistenceMode, (Device, unsigned*))                          \
  X(nvmlDeviceGetCurrPcieLinkWidth, (Device, unsigned*))                        \
  X(nvmlDeviceGetMaxPcieLinkWidth, (Device, unsigned*))                         \
  X(nvmlDeviceGetTotalEccErrors, (Device, unsigned, unsigned, unsigned long long*))

}  // namespace tensord::doctor::nvml
