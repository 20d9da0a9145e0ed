// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

// The life of a version as a table. docs/model_lifecycle.md draws it.
namespace tensord::models {

// With the names and numbers of GetModelStatus.
enum class State : uint8_t {
  kStart = 10,      // Wanted, not started: its files, its turn or memory are waited for.
  kLoading = 20,    // A worker loads it, or will after a pause: the first time or after a death.
  kAvailable = 30,  // Loaded, warm, alive.
  kUnloading = 40,  // No new request; its workers finish and end.
  kEnd = 50,        // No worker, none planned. A status that is not OK says why it failed.
};

constexpr std::string_view StateName(State state) {
  switch (state) {
    case State::kStart:
      return "START";
    case State::kLoading:
      return "LOADING";
    case State::kAvailable:
      return "AVAILABLE";
    case State::kUnloading:
      return "UNLOADING";
    case State::kEnd:
      return "END";
  }
  return "UNKNOWN";
}

struct Edge {
  State from, to;
};
inline constexpr Edge kEdges[] = {
    {State::kStart, State::kLoading},        // A worker was asked to load it.
    {State::kStart, State::kEnd},            // Not wanted any more, or it does not fit the memory.
    {State::kLoading, State::kAvailable},    // The first worker is loaded and warm.
    {State::kLoading, State::kUnloading},    // Not wanted any more; its workers are told to stop.
    {State::kLoading, State::kEnd},          // Failed for good, or not wanted between two tries.
    {State::kAvailable, State::kLoading},    // The last worker died; the next is started.
    {State::kAvailable, State::kUnloading},  // Not wanted any more.
    {State::kAvailable, State::kEnd},        // The last worker died once too often.
    {State::kUnloading, State::kEnd},        // The last worker is gone.
    {State::kEnd, State::kStart},  // Wanted (again): new files, memory, or nothing better.
};
constexpr bool Allowed(State from, State to) {
  return std::any_of(std::begin(kEdges), std::end(kEdges),
                     [=](Edge edge) { return edge.from == from && edge.to == to; });
}
static_assert(!Allowed(State::kUnloading, State::kAvailable), "a drained version never comes back");
static_assert(!Allowed(State::kUnloading, State::kLoading), "it ends before it is loaded again");
static_assert(!Allowed(State::kStart, State::kAvailable), "nothing is visible before it is loaded");
static_assert(!Allowed(State::kEnd, State::kAvailable) && !Allowed(State::kEnd, State::kLoading),
              "an ended version starts from the beginning");

// Workers run or are planned.
constexpr bool Active(State state) {
  return state == State::kStart || state == State::kLoading || state == State::kAvailable;
}

}  // namespace tensord::models
