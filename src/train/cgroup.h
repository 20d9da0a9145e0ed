// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

// A control group (version 2) for the ranks of a run, where the kernel and our rights allow one.
// All that ranks start is in it, whatever it does with its session and its parent, and one write
// ends it.
namespace tensord::train {

// Where this process's own group lies, by /proc/self/mountinfo and /proc/self/cgroup; "" without
// version 2. Pure.
std::string GroupFolder(const std::string& mountinfo, const std::string& cgroup);

// A new group below ours; "" where we may not make one.
std::string MakeGroup(const std::string& name);
// In a child before exec: moves this process into the group. Only tidiness is lost when it fails.
void JoinGroup(const std::string& group);
// Its part of the CPU beside its siblings, which have kGroupWeight unless told otherwise. False
// where it cannot be set: the group above it does not hand that controller down.
inline constexpr int kGroupWeight = 100;
// Small, and enough for heartbeats beside siblings that want all.
inline constexpr int kGroupWeightLight = 10;
bool SetGroupWeight(const std::string& group, int weight);
// Ends all in it. Does nothing without a group.
void KillGroup(const std::string& group);
// Nothing may run in it any more. Blocks for two seconds at most.
void RemoveGroup(const std::string& group);

}  // namespace tensord::train
