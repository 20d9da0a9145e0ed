// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/machine.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/small_file.h"
#include "base/text.h"
#include "train/address.h"
#include "train/environment.h"
#include "train/limits.h"
#include "train/processes.h"

namespace tensord::train {
namespace {

constexpr absl::Duration kPythonWait = absl::Seconds(30);  // A cold disk and a busy machine.

// Prints python, tensorflow, keras and CUDA versions, a line each, without importing TensorFlow.
constexpr std::string_view kAskPython = R"(import sys, importlib.metadata as m
def v(*names):
    for n in names:
        try: return m.version(n)
        except m.PackageNotFoundError: pass
    return ''
print('%d.%d.%d' % sys.version_info[:3])
print(v('tensorflow', 'tensorflow-cpu'))
print(v('keras'))
print(v('nvidia-cuda-runtime-cu12'))
)";

std::vector<std::string> SplitAt(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// FNV-1a: tells versions of a file apart, and is no guard against anybody.
std::string Hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  char digits[17] = {};
  std::to_chars(digits, digits + sizeof(digits), hash, 16);
  return digits;
}

void LeaveMark(const std::string& folder, const std::string& run_id, NodeFacts* facts) {
  const std::string name = base::Cat(".tensord_check_", run_id, "_", facts->host, "_", getpid());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream file(base::Cat(folder, "/", name));
  file << "tensord\n";
  file.close();
  if (!file) {
    facts->checkpoint_error = base::Cat("the checkpoint directory ", folder,
                                        " cannot be written: ", std::strerror(errno));
    return;
  }
  facts->checkpoint_mark = name;
  struct statvfs space {};
  if (statvfs(folder.c_str(), &space) == 0) {
    facts->disk_free_bytes = static_cast<int64_t>(space.f_bavail * space.f_frsize);
  }
}

}  // namespace

std::vector<int> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  for (const std::string& range : SplitAt(text, ',')) {
    int first = 0;
    const char* const end = range.data() + range.size();
    const auto from = std::from_chars(range.data(), end, first);
    int last = first;
    auto to = from;
    if (from.ec == std::errc() && from.ptr != end && *from.ptr == '-') {
      to = std::from_chars(from.ptr + 1, end, last);
    }
    if (to.ec != std::errc() || to.ptr != end || first < 0 || last < first || last > 4095) {
      return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

GpuList FindGpus(const std::vector<std::string>& environment, const std::string& root) {
  GpuList list;
  std::vector<std::string> buses;  // In PCI order, as we tell CUDA to count.
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(base::Cat(root, "/proc/driver/nvidia/gpus"), error)) {
    buses.push_back(entry.path().filename().string());
  }
  std::sort(buses.begin(), buses.end());
  for (size_t i = 0; i < buses.size(); ++i) {
    const auto cpus = ParseCpuList(
        base::SmallFile(base::Cat(root, "/sys/bus/pci/devices/", buses[i], "/local_cpulist")));
    if (!cpus.empty()) list.cpus[base::Cat(i)] = cpus;
    list.visible.push_back(base::Cat(i));
  }
  const bool given = std::any_of(environment.begin(), environment.end(), [](const auto& variable) {
    return variable.starts_with("CUDA_VISIBLE_DEVICES=");
  });
  if (given) {
    list.visible = SplitAt(ValueOf(environment, "CUDA_VISIBLE_DEVICES"), ',');
    // CUDA's way to say "none".
    if (!list.visible.empty() && list.visible[0].starts_with('-')) list.visible.clear();
  }
  return list;
}

NodeFacts FindFacts(const std::vector<std::string>& program,
                    const std::vector<std::string>& environment, const GpuList& gpus, int cpus,
                    const std::string& checkpoint_dir, const std::string& run_id) {
  NodeFacts facts;
  facts.host = HostName();
  facts.gpus = static_cast<int>(gpus.visible.size());
  facts.cpus = cpus;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    facts.open_files = static_cast<int>(std::min<rlim_t>(files.rlim_cur, 1 << 30));
  }
  const std::string name = std::filesystem::path(program[0]).filename();
  if (name.starts_with("python")) {
    const auto text = RunAndRead(ToSpawn{.arguments = {program[0], "-c", std::string(kAskPython)},
                                         .environment = environment,
                                         .beats = {}},
                                 kPythonWait);
    if (text.ok()) {
      std::vector<std::string> lines = SplitAt(*text, '\n');
      lines.resize(4);
      facts.python = lines[0];
      facts.tensorflow = lines[1];
      facts.keras = lines[2];
      facts.cuda = lines[3];
    }
  }
  for (const std::string& argument : program) {
    if (!argument.ends_with(".py")) continue;
    facts.script_hash = Hash(base::SmallFile(argument));
    break;
  }
  if (!checkpoint_dir.empty()) LeaveMark(checkpoint_dir, run_id, &facts);
  return facts;
}

void RemoveMark(const std::string& checkpoint_dir, const NodeFacts& facts) {
  if (facts.checkpoint_mark.empty()) return;
  std::error_code error;
  std::filesystem::remove(base::Cat(checkpoint_dir, "/", facts.checkpoint_mark), error);
}

}  // namespace tensord::train
