// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/pinning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "train/processes.h"

namespace tensord::train {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

// A machine of files.
class Root {
 public:
  explicit Root(std::string_view name) : path_(base::Cat(testing::TempDir(), "/pinning_", name)) {
    std::filesystem::remove_all(path_);
  }
  ~Root() { std::filesystem::remove_all(path_); }

  void Write(const std::string& name, std::string_view text) {
    const std::filesystem::path file = base::Cat(path_, name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  // Hardware threads as machines number them: first one of every core, then the others.
  void HasCores(int nodes, int cores, int threads) {
    const int all = nodes * cores;
    for (int node = 0; node < nodes; ++node) {
      std::string list;
      for (int thread = 0; thread < threads; ++thread) {
        const int first = thread * all + node * cores;
        list += base::Cat(list.empty() ? "" : ",", first, "-", first + cores - 1);
      }
      Write(base::Cat("/sys/devices/system/node/node", node, "/cpulist"), list);
    }
    for (int cpu = 0; cpu < all * threads; ++cpu) {
      std::string siblings = base::Cat(cpu % all);
      for (int thread = 1; thread < threads; ++thread) {
        siblings += base::Cat(",", cpu % all + thread * all);
      }
      Write(base::Cat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"),
            siblings);
    }
    Allows(base::Cat("0-", all * threads - 1));
  }
  void Allows(std::string_view list) {
    Write("/proc/self/status", base::Cat("Name:\tx\nCpus_allowed_list:\t", list));
    Write("/proc/self/cgroup", "0::/job");
  }
  CpuMap Read() const { return ReadCpuMap(path_); }

 private:
  const std::string path_;
};

std::vector<std::string> Texts(const Pinning& pinning) {
  std::vector<std::string> texts;
  for (const Place& place : pinning.places) {
    texts.push_back(base::Cat(CpuListText(place.cpus), "@", place.memory_node));
  }
  return texts;
}

TEST(PlaceRanks, ShareOutWholeNodesThenWholeCores) {
  Root root("smt");
  root.HasCores(2, 4, 2);
  const CpuMap map = root.Read();
  EXPECT_EQ(map.nodes, 2);
  EXPECT_EQ(map.budget, 16);
  EXPECT_THAT(Texts(PlaceRanks(map, {.ranks = 2})), ElementsAre("0-3,8-11@0", "4-7,12-15@1"));
  EXPECT_THAT(Texts(PlaceRanks(map, {.ranks = 4})),
              ElementsAre("0-1,8-9@0", "2-3,10-11@0", "4-5,12-13@1", "6-7,14-15@1"));
}

TEST(PlaceRanks, WithUnevenNumbersRanksDifferByOneCoreAtMost) {
  Root root("uneven");
  root.HasCores(2, 4, 2);
  EXPECT_THAT(Texts(PlaceRanks(root.Read(), {.ranks = 3})),
              ElementsAre("0-1,8-9@0", "2-4,10-12@-1", "5-7,13-15@1"))
      << "one has CPUs of both nodes, and memory of both";
}

TEST(PlaceRanks, WithMoreRanksThanCoresHardwareThreadsAreSharedOut) {
  Root root("threads");
  root.HasCores(1, 2, 4);
  EXPECT_THAT(Texts(PlaceRanks(root.Read(), {.ranks = 4})),
              ElementsAre("0,2@-1", "4,6@-1", "1,3@-1", "5,7@-1"))
      << "a machine of one node has no memory to prefer";
}

TEST(PlaceRanks, UseOnlyCpusThatTheCpusetAllows) {
  Root root("cpuset");
  root.HasCores(2, 4, 1);
  root.Allows("2-5");
  EXPECT_THAT(Texts(PlaceRanks(root.Read(), {.ranks = 2})), ElementsAre("2-3@0", "4-5@1"));
}

TEST(PlaceRanks, AQuotaOrTooFewCpusForTheRanksLeaveThemToTheScheduler) {
  Root root("quota");
  root.HasCores(1, 8, 1);
  root.Write("/sys/fs/cgroup/job/cpu.max", "350000 100000");
  const CpuMap map = root.Read();
  EXPECT_EQ(map.budget, 4);
  EXPECT_THAT(Texts(PlaceRanks(map, {.ranks = 2})), ElementsAre("0-3@-1", "4-7@-1"))
      << "a quota is time: which CPUs it is spent on is free";
  const Pinning too_many = PlaceRanks(map, {.ranks = 3});
  EXPECT_THAT(too_many.why_not, HasSubstr("4 CPUs for 3 ranks"));
  EXPECT_THAT(too_many.places, Each(Field(&Place::cpus, IsEmpty())));
  EXPECT_THAT(too_many.places, testing::SizeIs(3));
}

TEST(PlaceRanks, OneRankAndParameterServersAreLeftAlone) {
  Root root("alone");
  root.HasCores(2, 4, 1);
  const Pinning one = PlaceRanks(root.Read(), {.ranks = 1});
  EXPECT_THAT(Texts(one), ElementsAre("@-1"));
  EXPECT_EQ(one.why_not, "");
  EXPECT_NE(PlaceRanks(root.Read(), {.mode = Mode::kParameterServer, .ranks = 3}).why_not, "");
}

TEST(PlaceRanks, RanksRunBesideTheirGpusWithTheMemoryOfThatNode) {
  Root root("gpus");
  root.HasCores(2, 4, 1);
  root.Allows("1-7");
  const std::map<std::string, std::vector<int>> near = {
      {"0", {0, 1, 2, 3}}, {"1", {0, 1, 2, 3}}, {"2", {4, 5, 6, 7}}};
  const auto place = [&](int ranks, std::vector<std::string> gpus) {
    return Texts(PlaceRanks(root.Read(), {.ranks = ranks, .gpus = std::move(gpus), .near = near}));
  };
  EXPECT_THAT(place(3, {"0", "1", "2"}), ElementsAre("1-3@0", "1-3@0", "4-7@1"));
  EXPECT_THAT(place(1, {"2"}), ElementsAre("4-7@1"));
  EXPECT_THAT(place(1, {"0", "2"}), ElementsAre("@-1")) << "it has the whole machine";
  EXPECT_THAT(place(2, {"7", "8"}), ElementsAre("@-1", "@-1")) << "nobody knows where they are";
}

TEST(ReadCpuMap, OfAMachineThatSaysNothingIsEmptyAndPinsNobody) {
  Root root("bare");
  const CpuMap map = root.Read();
  EXPECT_THAT(map.allowed, IsEmpty());
  EXPECT_NE(PlaceRanks(map, {.ranks = 2}).why_not, "");
}

TEST(Spawn, KeepsAProcessToItsCpus) {
  const CpuMap map = ReadCpuMap("");
  ASSERT_FALSE(map.allowed.empty());
  const int last = map.allowed.back().number;
  const auto text = RunAndRead({.arguments = {"grep", "Cpus_allowed_list", "/proc/self/status"},
                                .environment = {"PATH=/usr/bin:/bin"},
                                .place = {.cpus = {last}},
                                .beats = {}},
                               absl::Seconds(60));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, base::Cat("Cpus_allowed_list:\t", last, "\n"));
}

TEST(MayPrefer, LeavesThisProcessAsItWas) {
  // Refused in some containers, which is an answer as well; a second one must be the same.
  EXPECT_EQ(MayPrefer(0), MayPrefer(0));
}

TEST(CpuListText, IsAsTheKernelWritesIt) {
  EXPECT_EQ(CpuListText({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(CpuListText({}), "");
}

}  // namespace
}  // namespace tensord::train
