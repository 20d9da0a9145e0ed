// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/cpu_budget.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace tensord::config {
namespace {

TEST(CpuBudget, ReadsTheQuotaOfCgroup2) {
  EXPECT_EQ(CpusOfMax("max 100000\n"), std::nullopt);
  EXPECT_EQ(CpusOfMax("200000 100000\n"), 2);
  EXPECT_EQ(CpusOfMax("150000 100000\n"), 2);
  EXPECT_EQ(CpusOfMax("1000 100000\n"), 1);
  for (const char* text : {"", "\n", "100000", "x y", "100000 0", "-5 100000", "1 2 3"}) {
    EXPECT_EQ(CpusOfMax(text), std::nullopt) << text;
  }
}

TEST(CpuBudget, ReadsTheQuotaOfCgroup1) {
  EXPECT_EQ(CpusOfQuota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(CpusOfQuota("250000\n", "100000\n"), 3);
  EXPECT_EQ(CpusOfQuota("", ""), std::nullopt);
  EXPECT_EQ(CpusOfQuota("100000", "0"), std::nullopt);
}

TEST(CpuBudget, CountsListsOfCpus) {
  EXPECT_EQ(CpusOfList("0-3,7\n"), 5);
  EXPECT_EQ(CpusOfList("5"), 1);
  for (const char* text : {"", "\n", "3-1", "a", "1,,2", "-1", "0-99999999"}) {
    EXPECT_EQ(CpusOfList(text), std::nullopt) << text;
  }
}

TEST(CpuBudget, ReadsMemoryLimits) {
  EXPECT_EQ(BytesOfLimit("max\n"), std::nullopt);
  EXPECT_EQ(BytesOfLimit("1073741824\n"), 1u << 30);
  EXPECT_EQ(BytesOfLimit("9223372036854771712\n"), std::nullopt);
  EXPECT_EQ(BytesOfMeminfo("MemFree: 1 kB\nMemTotal:       16316412 kB\n"), 16316412ull * 1024);
  EXPECT_EQ(BytesOfMeminfo("MemTotal: 5\n"), std::nullopt);
  EXPECT_EQ(BytesOfMeminfo(""), std::nullopt);
}

TEST(CpuBudget, FindsOurCgroup) {
  const char* hybrid = "12:cpuset:/kube\n4:cpu,cpuacct:/kube/pod\n0::/unified/slice\n";
  EXPECT_EQ(CgroupPath(hybrid, "cpu"), "/kube/pod");
  EXPECT_EQ(CgroupPath(hybrid, "cpuset"), "/kube");
  EXPECT_EQ(CgroupPath(hybrid, "memory"), std::nullopt);
  EXPECT_EQ(CgroupPath(hybrid, ""), "/unified/slice");
  EXPECT_EQ(CgroupPath("", ""), std::nullopt);
}

// A directory with the files that one kind of machine has.
class Machine {
 public:
  explicit Machine(const std::string& name)
      : root_(std::filesystem::path(testing::TempDir()) / ("tensord_budget_" + name)) {
    std::filesystem::remove_all(root_);
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine& Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    return *this;
  }
  BudgetFiles files() const { return {root_ / "proc", root_ / "cgroup", root_ / "cpus"}; }

 private:
  const std::filesystem::path root_;
};

TEST(CpuBudget, TakesTheLowestLimitOnTheWayUp) {
  Machine machine("v2");
  machine.Put("proc/self/cgroup", "0::/a/b\n")
      .Put("cgroup/a/b/cpu.max", "400000 100000\n")
      .Put("cgroup/a/cpu.max", "250000 100000\n")
      .Put("cgroup/a/b/memory.max", "max\n")
      .Put("cgroup/a/memory.max", "2048\n");
  EXPECT_EQ(CgroupCpus(machine.files()), 3);
  EXPECT_EQ(CgroupBytes(machine.files()), 2048u);
  machine.Put("cgroup/a/b/cpuset.cpus.effective", "0-1\n");
  EXPECT_EQ(CgroupCpus(machine.files()), 2);
}

TEST(CpuBudget, SeesAContainersLimitsAtTheRootOfItsMount) {
  Machine machine("container");
  machine.Put("proc/self/cgroup", "4:memory:/docker/f00\n3:cpu,cpuacct:/docker/f00\n0::/\n")
      .Put("cgroup/cpu/cpu.cfs_quota_us", "150000\n")
      .Put("cgroup/cpu/cpu.cfs_period_us", "100000\n")
      .Put("cgroup/memory/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(CgroupCpus(machine.files()), 2);
  EXPECT_EQ(CgroupBytes(machine.files()), 4096u);
}

TEST(CpuBudget, IsUnlimitedWithoutCgroups) {
  Machine machine("none");
  EXPECT_EQ(CgroupCpus(machine.files()), std::nullopt);
  EXPECT_EQ(CgroupBytes(machine.files()), std::nullopt);
}

TEST(CpuBudget, HardwareThreadsOfOneCoreCountOnce) {
  Machine machine("smt");
  machine.Put("cpus/cpu0/topology/thread_siblings_list", "0,2\n")
      .Put("cpus/cpu1/topology/thread_siblings_list", "1,3\n")
      .Put("cpus/cpu2/topology/thread_siblings_list", "0,2\n")
      .Put("cpus/cpu3/topology/thread_siblings_list", "1,3\n");
  EXPECT_EQ(CoresOf(machine.files(), {0, 1, 2, 3}), 2);
  EXPECT_EQ(CoresOf(machine.files(), {0, 2}), 1);
  EXPECT_EQ(CoresOf(machine.files(), {0, 1}), 2);
  EXPECT_EQ(CoresOf(machine.files(), {0, 7, 8}), 3) << "nothing is known of 7 and 8";
  EXPECT_GE(CoreBudget(), 1);
  EXPECT_LE(CoreBudget(), CpuBudget());
}

TEST(CpuBudget, IsNoMoreThanTheAffinityMask) {
  EXPECT_GE(CpuBudget(), 1);
  // In a thread of its own: the mask is a thread's.
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(CpuBudget(), 1);
  }).join();
}

TEST(CpuBudget, LoopsFollowTheCpusUnlessSet) {
  const ServerOptions chosen;
  EXPECT_EQ(LoopCount(chosen, 1), 1);
  EXPECT_EQ(LoopCount(chosen, 4), 1);
  EXPECT_EQ(LoopCount(chosen, 5), 2);
  EXPECT_EQ(LoopCount(chosen, 12), 2);
  EXPECT_EQ(LoopCount(chosen, 13), 3);
  EXPECT_EQ(LoopCount({.loops = 2}, 1), 2);
}

TEST(CpuBudget, MemorySettingsOverrideWhatWasFound) {
  EXPECT_EQ(MemoryLimit({}, 1000), 1000u);
  EXPECT_EQ(MemoryLimit({.memory_limit_bytes = 5}, 1000), 5u);
  EXPECT_EQ(RequestBytesBudget({}, 1000), 250u);
  EXPECT_EQ(RequestBytesBudget({.request_bytes_budget = 7}, 1000), 7u);
}

}  // namespace
}  // namespace tensord::config
